package cli

// The address that serve listens on unless told otherwise, and where the client commands look for a
// server. It is a loopback address: nobody else can reach it.
const (
	defaultListen = "127.0.0.1:7117"
	defaultServer = "http://" + defaultListen
)
