package examples_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/runnel-stream/runnel/runneltest"
)

// sqlProgram is a built program of examples/sql, with a stream and a database.
type sqlProgram struct {
	*testing.T
	server *runneltest.Server
	stream string
	bin    string
	file   string
	db     *sql.DB
}

func newSQLProgram(t *testing.T, name, stream string) *sqlProgram {
	t.Helper()
	t.Parallel()
	dir := t.TempDir()
	p := &sqlProgram{
		T: t, stream: stream, bin: filepath.Join(dir, name), file: filepath.Join(dir, "data.db"),
		server: runneltest.NewServer(t, runneltest.WithStream(stream, 2)),
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", p.bin, "./sql/"+name)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", name, err, out)
	}
	var err error
	if p.db, err = sql.Open("sqlite", "file:"+p.file+"?_pragma=busy_timeout(10000)"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.db.Close() })
	return p
}

// put puts records; each is a key and data.
func (p *sqlProgram) put(records ...[2]string) {
	p.Helper()
	in := &kinesis.PutRecordsInput{StreamName: aws.String(p.stream)}
	for _, r := range records {
		in.Records = append(in.Records, types.PutRecordsRequestEntry{
			PartitionKey: aws.String(r[0]), Data: []byte(r[1]),
		})
	}
	if _, err := p.server.Kinesis().PutRecords(p.Context(), in); err != nil {
		p.Fatal(err)
	}
}

func (p *sqlProgram) command(ctx context.Context, more ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, p.bin, append([]string{p.file}, more...)...)
	c.Env = append(os.Environ(), "AWS_ENDPOINT_URL="+p.server.Endpoint(),
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any")
	return c
}

// killed starts the program a few times and kills it at a random moment. Then it lets it run to its
// end.
func (p *sqlProgram) killed(between func()) {
	p.Helper()
	for range 4 {
		between()
		ctx, kill := context.WithTimeout(p.Context(),
			time.Duration(100+rand.IntN(900))*time.Millisecond)
		_ = p.command(ctx).Run() // killed
		kill()
	}
	between()
	ctx, cancel := context.WithTimeout(p.Context(), time.Minute)
	defer cancel()
	if out, err := p.command(ctx, "once").CombinedOutput(); err != nil {
		p.Fatalf("%v\n%s", err, out)
	}
}

func (p *sqlProgram) ask(query string) (n int) {
	p.Helper()
	if err := p.db.QueryRowContext(p.Context(), query).Scan(&n); err != nil {
		p.Fatal(err)
	}
	return n
}

// TestBalance kills the program again and again. Each payment counts once, and one that is no
// number is a dead letter.
func TestBalance(t *testing.T) {
	p := newSQLProgram(t, "balance", "payments")
	want, number := map[string]int{}, 0
	p.killed(func() {
		var records [][2]string
		for range 400 {
			number++
			account := fmt.Sprint("account-", number%13)
			want[account] += number
			records = append(records, [2]string{account, fmt.Sprint(number)})
		}
		records = append(records, [2]string{"account-1", "a lot"})
		p.put(records...)
	})
	for account, sum := range want {
		if got := p.ask("select amount from balance where account = '" + account + "'"); got != sum {
			t.Errorf("%s has %d, want %d", account, got, sum)
		}
	}
	if n := p.ask("select count(*) from runnel_dead where cast(data as text) = 'a lot'"); n != 5 {
		t.Errorf("%d dead letters, want 5", n)
	}
}

// TestCurrent sets and deletes keys, kills the program again and again, and finds the last state.
func TestCurrent(t *testing.T) {
	p := newSQLProgram(t, "current", "things")
	want, number := map[string]string{}, 0
	p.killed(func() {
		var records [][2]string
		for range 400 {
			number++
			key, value := fmt.Sprint("thing-", rand.IntN(50)), fmt.Sprint(number)
			if want[key] = value; rand.IntN(4) == 0 {
				value = ""
				delete(want, key)
			}
			records = append(records, [2]string{key, value})
		}
		p.put(records...)
	})
	for key, value := range want {
		if n := p.ask(fmt.Sprintf("select count(*) from things where key = '%s' and value = '%s'",
			key, value)); n != 1 {
			t.Errorf("%s is not %s", key, value)
		}
	}
	if n := p.ask("select count(*) from things"); n != len(want) {
		t.Errorf("%d things, want %d", n, len(want))
	}
}
