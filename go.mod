module github.com/weir-limiter/weir

go 1.26
