package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/runnel-stream/runnel/internal/awserr"
)

// ErrOtherOutput is the error that every *OutputError matches.
var ErrOtherOutput = errors.New("the application has another output")

// OutputError is returned to a worker whose output is not that of the application.
// errors.Is(err, ErrOtherOutput) holds.
type OutputError struct {
	Table string // the lease table's name, which is the application's
	Want  string // the worker's output
	Have  string // the application's
}

func (e *OutputError) Error() string {
	return fmt.Sprintf("application %s fills %s, so %s would lack its records: name another "+
		"application, which begins with the oldest record", e.Table, e.Have, e.Want)
}

// Is reports whether target is ErrOtherOutput.
func (e *OutputError) Is(target error) bool { return target == ErrOtherOutput }

// SettleOutput makes output that of the application, or returns an *OutputError if the application
// has another one. The output is a text that names where the records go (runnelOutput). It holds
// for the table's life: resets keep it. The caller has seen to it that the table has its leases,
// and holds none of them yet.
//
// One row decides: the smallest one that has not ended. A worker writes its output there on the
// condition that the row has none, and reads the table again. It goes on when it finds its own
// output in a row, and no other one.
//
// So of two workers with different outputs at most one goes on. An output in a row is never
// changed. If both wrote to one row, the second write failed. If they wrote to two rows, since one
// of these was created or ended in between, then the second writer reads the first one's row after
// its own write. In that case the first writer may be refused, too, which is safe. The row of the
// first writer cannot be gone by then: it had not ended, Take writes the output into each row, and
// the rows of a shard's children are created with it before the shard's own row ends.
//
// Workers without an output, such as those of Java and of older versions, preserve the attribute.
func (t *Table) SettleOutput(ctx context.Context, output string) error {
	o := appOutput{table: t, name: output}
	for {
		leases, _, err := t.List(ctx)
		if err != nil {
			return err
		}
		if settled, err := o.isIn(leases); settled || err != nil {
			return err
		}
		first := slices.IndexFunc(leases, func(l Lease) bool { return !l.Ended() })
		if first < 0 {
			return t.wrap("settle the output", "", errNoOpenLease)
		}
		if err := o.write(ctx, leases[first]); err != nil {
			return err
		}
	}
}

var errNoOpenLease = errors.New("no row is of a shard that has not ended")

// appOutput is a worker's output for a table; the name "" is none.
type appOutput struct {
	table *Table
	name  string
}

// isIn reports whether a row has the output. Another one in any row is an error.
func (o appOutput) isIn(leases []Lease) (settled bool, err error) {
	for _, l := range leases {
		if err := o.check(l); err != nil {
			return false, err
		}
		settled = settled || l.Output == o.name
	}
	return settled, nil
}

// check returns an *OutputError if a row has another output.
func (o appOutput) check(l Lease) error {
	if l.Output == "" || o.name == "" || l.Output == o.name {
		return nil
	}
	return &OutputError{Table: o.table.cfg.Table, Want: o.name, Have: l.Output}
}

// write writes the output into a row that has not ended. It does nothing if the row has an output
// or has moved since.
func (o appOutput) write(ctx context.Context, seen Lease) error {
	_, err := o.table.annotate(ctx, seen, &dynamodb.UpdateItemInput{
		ConditionExpression: aws.String("attribute_not_exists(#output) AND #checkpoint = :seen"),
		UpdateExpression:    aws.String("SET #output = :output"),
		ExpressionAttributeNames: map[string]string{
			"#output": attrOutput, "#checkpoint": attrCheckpoint,
		},
		ExpressionAttributeValues: item{
			":output": str(o.name), ":seen": str(string(seen.Checkpoint.Sequence)),
		},
	})
	if _, refused := awserr.ConditionFailed(err); err != nil && !refused {
		return o.table.wrap("settle the output", seen.Key, err)
	}
	return nil
}
