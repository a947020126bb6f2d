package processes_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
	"github.com/runnel-stream/runnel/internal/localca"
)

var banner = regexp.MustCompile(`(https?://127\.0\.0\.1:\d+), data`)

// serveUp starts a server on a free port and returns its URL once it listens.
func serveUp(t *testing.T, args ...string) (p *process, url string) {
	t.Helper()
	r := &killRun{t: t}
	p = r.start(append([]string{"serve", "--addr", "127.0.0.1:0", "--stream", "s:1"}, args...)...)
	for deadline := time.Now().Add(20 * time.Second); ; {
		if match := banner.FindStringSubmatch(p.stderr.String()); match != nil {
			return p, match[1]
		}
		select {
		case <-p.done:
			t.Fatalf("the server ended: %s", p.stderr.String())
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server is not up: %s", p.stderr.String())
		}
	}
}

// runnel runs a command and returns its output.
func runnel(t *testing.T, status int, args ...string) (stdout, stderr string) {
	t.Helper()
	p := (&killRun{t: t}).start(args...)
	p.want(status)
	return p.stdout.String(), p.stderr.String()
}

// trusting is a client of HTTP/2 that trusts the PEM alone.
func trusting(t *testing.T, text []byte) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		t.Fatalf("no certificate in %q", text)
	}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func wantHealthy(t *testing.T, client *http.Client, url string) {
	t.Helper()
	answer, err := client.Get(url + "/health")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK || answer.ProtoMajor != 2 {
		t.Errorf("health: %s over %s", answer.Status, answer.Proto)
	}
}

// TestServeTLS: with nothing but --tls, clients that trust the printed authority get on, over
// restarts.
func TestServeTLS(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	file := filepath.Join(dir, "tls", "ca.pem")
	var printed []string
	for range 2 {
		server, url := serveUp(t, "--tls", "--data", dir)
		if !strings.HasPrefix(url, "https://") {
			t.Fatalf("it listens on %s", url)
		}
		t.Setenv("AWS_CA_BUNDLE", file)
		t.Setenv("AWS_ENDPOINT_URL", url)
		if got, _ := runnel(t, 0, "streams", "list"); got != "s\n" {
			t.Errorf("streams list: %q", got)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		client := trusting(t, text)
		wantHealthy(t, client, url)
		wantHealthy(t, client, strings.Replace(url, "127.0.0.1", "localhost", 1))
		client.CloseIdleConnections()
		server.stop()
		printed = append(printed, server.stdout.String())
		if want := "# the certificate authority, kept in " + file + "\n" + string(text); printed[0] !=
			want {
			t.Errorf("printed %q, want %q", printed[0], want)
		}
	}
	if printed[0] != printed[1] {
		t.Error("after the restart clients have to trust another authority")
	}
}

func TestServeTLSInMemory(t *testing.T) {
	server, url := serveUp(t, "--tls", "--memory", "--quiet=false")
	server.stop()
	out := server.stdout.String()
	if !strings.HasPrefix(url, "https://") || !strings.HasPrefix(out, "# the certificate "+
		"authority, made for this run alone\n-----BEGIN CERTIFICATE-----\n") {
		t.Errorf("%s: %q", url, out)
	}
}

// TestServeOwnCertificate: the certificate of the flags is the one that is shown.
func TestServeOwnCertificate(t *testing.T) {
	certificate, key, trusted := writeCertificate(t, t.TempDir())
	server, url := serveUp(t, "--memory", "--tls-cert", certificate, "--tls-key", key)
	client := trusting(t, trusted)
	wantHealthy(t, client, url)
	client.CloseIdleConnections()
	server.stop()
	if out := server.stdout.String(); out != "" {
		t.Errorf("printed %q", out)
	}
	_, stderr := runnel(t, 2, "serve", "--memory", "--tls-cert", key, "--tls-key", key)
	if !strings.Contains(stderr, "--tls-cert "+key) {
		t.Errorf("a key for a certificate: %s", stderr)
	}
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) { // its virtual time begins in the year 2000
		certificate, key, _ = writeCertificate(t, dir)
	})
	_, stderr = runnel(t, 2, "serve", "--memory", "--tls-cert", certificate, "--tls-key", key)
	if !strings.Contains(stderr, "ran out on") {
		t.Errorf("an old certificate: %s", stderr)
	}
}

// writeCertificate writes a server's certificate and its key into a folder.
func writeCertificate(t *testing.T, dir string) (certificate, key string, trusted []byte) {
	t.Helper()
	ca, err := localca.New()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.TLS("127.0.0.1").GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{
		certificate: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]},
		key:         {Type: "PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate, key, ca.PEM()
}

// TestServeSignatures: a client with a key of the file is accepted, and no other.
func TestServeSignatures(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys.ini")
	err := os.WriteFile(keys, []byte("[one]\naws_access_key_id = AKIDONE\n"+
		"aws_secret_access_key = secret\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	server, url := serveUp(t, "--memory", "--auth", "sigv4="+keys)
	t.Setenv("AWS_ENDPOINT_URL", url)
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDONE")
	for secret, status := range map[string]int{"secret": 0, "guessed": 3} {
		t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
		stdout, stderr := runnel(t, status, "streams", "list")
		if (status == 0) != (stdout == "s\n") ||
			(status == 0) == strings.Contains(stderr, "signature") {
			t.Errorf("with %s: %q, %s", secret, stdout, stderr)
		}
	}
	if err := clitest.Healthy(url); err != nil {
		t.Errorf("health, without a key: %v", err)
	}
	server.stop()
}
