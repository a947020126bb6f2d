// Command runnel serves and uses an ordered, exactly-once event pipeline on the Kinesis API.
package main

import (
	"context"
	"os"

	"github.com/runnel-stream/runnel/internal/cli"
)

func main() {
	os.Exit(cli.Main(context.Background(), os.Args[1:], cli.Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
	}))
}
