module github.com/weir-limiter/weir/bench

go 1.26.0

require (
	github.com/sethvargo/go-limiter v1.1.0
	github.com/throttled/throttled/v2 v2.15.0
	github.com/weir-limiter/weir v0.0.0
	golang.org/x/time v0.16.0
)

require github.com/hashicorp/golang-lru v0.5.4 // indirect

replace github.com/weir-limiter/weir => ..
