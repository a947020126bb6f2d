package examples_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
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
	app    string // its name is the lease table's
	bin    string
	file   string
	db     *sql.DB
}

func newSQLProgram(t *testing.T, name, stream, app string) *sqlProgram {
	t.Helper()
	t.Parallel()
	dir := t.TempDir()
	p := &sqlProgram{
		T: t, stream: stream, app: app, bin: filepath.Join(dir, name),
		file:   filepath.Join(dir, "data.db"),
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

// rounds is how often a test starts the program to kill it.
const rounds = 12

// killed starts the program again and again, after records that between has put, and kills it when
// it has committed once or twice: a program that commits an effect and its position apart is then
// halfway. In the end it lets it run to its end.
func (p *sqlProgram) killed(between func(round int)) {
	p.Helper()
	for round := range rounds {
		between(round)
		p.forgetLeases()
		p.killedAfter(1 + rand.IntN(2))
	}
	between(rounds)
	p.forgetLeases()
	ctx, cancel := context.WithTimeout(p.Context(), time.Minute)
	defer cancel()
	if out, err := p.command(ctx, "once").CombinedOutput(); err != nil {
		p.Fatalf("%v\n%s", err, out)
	}
}

// forgetLeases lets the next program begin at once: the one before it has gone with its leases. The
// positions are in the database.
func (p *sqlProgram) forgetLeases() {
	p.Helper()
	_, err := p.server.DynamoDB().DeleteTable(p.Context(), &dynamodb.DeleteTableInput{
		TableName: aws.String(p.app),
	})
	if absent := new(dynamotypes.ResourceNotFoundException); err != nil && !errors.As(err, &absent) {
		p.Fatal(err)
	}
}

// killedAfter starts the program, and kills it right after some commits; it may have less to do.
func (p *sqlProgram) killedAfter(commits int) {
	p.Helper()
	conn, err := p.db.Conn(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(p.Context(), "pragma busy_timeout = 0"); err != nil {
		p.Fatal(err) // the program's lock would hold up the kill
	}
	// version changes with each commit of another connection.
	version := func() (n int) {
		for conn.QueryRowContext(p.Context(), "pragma data_version").Scan(&n) != nil {
			time.Sleep(50 * time.Microsecond) // the program is committing
		}
		return n
	}
	seen := version()
	program := p.command(p.Context())
	if err := program.Start(); err != nil {
		p.Fatal(err)
	}
	for until := time.Now().Add(10 * time.Second); commits > 0; time.Sleep(50 * time.Microsecond) {
		now := version()
		if now != seen {
			seen, commits, until = now, commits-1, time.Now().Add(300*time.Millisecond)
		}
		if time.Now().After(until) {
			break
		}
	}
	_ = program.Process.Kill()
	_ = program.Wait() // the error is the signal
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
	p := newSQLProgram(t, "balance", "payments", "balances")
	want, number := map[string]int{}, 0
	p.killed(func(round int) {
		var records [][2]string
		for range 400 {
			number++
			account := fmt.Sprint("account-", number%13)
			want[account] += number
			records = append(records, [2]string{account, fmt.Sprint(number)})
		}
		if round == rounds { // it holds its shard for some seconds
			records = append(records, [2]string{"account-1", "a lot"})
		}
		p.put(records...)
	})
	for account, sum := range want {
		if got := p.ask("select amount from balance where account = '" + account + "'"); got != sum {
			t.Errorf("%s has %d, want %d", account, got, sum)
		}
	}
	if n := p.ask("select count(*) from runnel_dead where cast(data as text) = 'a lot'"); n != 1 {
		t.Errorf("%d dead letters, want 1", n)
	}
}

// TestCurrent sets and deletes keys, kills the program again and again, and finds the last state.
// Some keys of a round are not in later ones, so a loss shows.
func TestCurrent(t *testing.T) {
	p := newSQLProgram(t, "current", "things", "things")
	want, number := map[string]string{}, 0
	p.killed(func(round int) {
		var records [][2]string
		for range 400 {
			number++
			key, value := fmt.Sprint("thing-", 20*round+rand.IntN(50)), fmt.Sprint(number)
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
