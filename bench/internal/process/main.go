package process

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Main is the main function of a benchmark that runs itself as its clients: with the first argument
// asClient it calls client with the others, and otherwise run with all.
func Main(
	name, asClient string,
	client func(ctx context.Context, args []string, in io.Reader, out io.Writer) error,
	run func(ctx context.Context, args []string, out io.Writer) error,
) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if len(os.Args) > 1 && os.Args[1] == asClient {
		err = client(ctx, os.Args[2:], os.Stdin, os.Stdout)
	} else {
		err = run(ctx, os.Args[1:], os.Stdout)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		stop()
		os.Exit(1)
	}
}
