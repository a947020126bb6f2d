package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/usage"
)

const (
	healthTimeout = 5 * time.Second        // of one question
	healthLast    = time.Second            // of the last one at least, as --wait ends
	healthPause   = 100 * time.Millisecond // between two
)

func healthCommand(con *console.Console) *cobra.Command {
	var endpoint string
	var wait time.Duration
	command := &cobra.Command{
		Use:   "health",
		Short: "Ask whether a server or a proxy answers: for containers and scripts",
		Long: `Ask whether a server or a proxy answers. It needs no key. The status is 0 if it
answers calls, 1 if it says that it does not (the reason is printed), and 3 if no runnel server or
proxy answers there.`,
		Example: `  runnel health --wait 30s
  runnel health --endpoint https://streams.internal:4567`,
		Args: usage.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if wait < 0 {
				return exit.Usage("--wait %v: want 0 or more", wait)
			}
			return runHealth(c.Context(), con, endpoint, wait)
		},
	}
	flags := command.Flags()
	flags.StringVar(&endpoint, "endpoint", "", "the URL of the server (default: "+
		"AWS_ENDPOINT_URL_KINESIS, AWS_ENDPOINT_URL, or "+awsclient.LocalEndpoint+")")
	flags.DurationVar(&wait, "wait", 0, "how long to ask again until it answers")
	return command
}

func runHealth(
	ctx context.Context, con *console.Console, endpoint string, wait time.Duration,
) error {
	endpoint = cmp.Or(endpoint, os.Getenv("AWS_ENDPOINT_URL_KINESIS"),
		os.Getenv("AWS_ENDPOINT_URL"), awsclient.LocalEndpoint)
	client, err := healthClient()
	if err != nil {
		return err
	}
	for until := time.Now().Add(wait); ; {
		if wait > 0 {
			client.Timeout = min(healthTimeout, max(time.Until(until), healthLast))
		}
		answer, err := askHealth(ctx, client, endpoint)
		if err == nil {
			con.Say("%s: %s", endpoint, answer)
			return nil
		}
		if time.Now().After(until) || errors.Is(err, errNoURL) || ctx.Err() != nil {
			return err
		}
		_ = retry.Wait(ctx, healthPause) // the next question notes the end of the context
	}
}

// healthClient returns a client that trusts AWS_CA_BUNDLE, as the SDKs do.
func healthClient() (*http.Client, error) {
	client := &http.Client{Timeout: healthTimeout}
	file := os.Getenv("AWS_CA_BUNDLE")
	if file == "" {
		return client, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, exit.Usage("AWS_CA_BUNDLE: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, exit.Usage("AWS_CA_BUNDLE %s: it holds no certificate", file)
	}
	client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	return client, nil
}

var errNoURL = errors.New("want a URL, as " + awsclient.LocalEndpoint)

func askHealth(ctx context.Context, client *http.Client, endpoint string) (string, error) {
	if !strings.HasPrefix(endpoint, "http://") && !strings.HasPrefix(endpoint, "https://") {
		return "", exit.Usage("--endpoint %s: %w", endpoint, errNoURL)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet,
		strings.TrimSuffix(endpoint, "/")+"/health", nil)
	if err != nil {
		return "", exit.Usage("--endpoint %s: %w", endpoint, errors.Join(errNoURL, err))
	}
	answer, err := client.Do(r)
	var untrusted *tls.CertificateVerificationError
	var failed *url.Error
	switch {
	case ctx.Err() != nil:
		return "", exit.ErrInterrupt
	case errors.As(err, &untrusted):
		return "", exit.Outside(err)
	case errors.As(err, &failed) && failed.Timeout():
		return "", exit.Outside(fmt.Errorf("no answer from %s within %v", endpoint,
			client.Timeout.Round(time.Millisecond)))
	case err != nil:
		return "", exit.Outside(fmt.Errorf("no server answers: %w", err))
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
	if err != nil {
		return "", exit.Outside(fmt.Errorf("%s: %w", endpoint, err))
	}
	return readHealth(endpoint, answer, strings.TrimSpace(string(text)))
}

// readHealth judges an answer to GET /health. Only runnel's own say anything about the health of a
// server or proxy: another program at the address may answer 200 to every path.
func readHealth(endpoint string, answer *http.Response, said string) (string, error) {
	first, _, _ := strings.Cut(said, "\n")
	switch {
	case answer.StatusCode == http.StatusOK && first == "ok":
		return said, nil
	case answer.StatusCode == http.StatusServiceUnavailable:
		return "", &exit.Error{
			Status: exit.StatusNo,
			Err:    fmt.Errorf("%s answers %s: %s", endpoint, answer.Status, said),
		}
	}
	return "", exit.Outside(fmt.Errorf("%s answers GET /health with %s (%.200q): want a runnel "+
		"server or proxy there: check --endpoint", endpoint, answer.Status, first))
}
