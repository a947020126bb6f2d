package dynamotable_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel/internal/dynamotable"
)

// fake has at most one table, which is CREATING for a second.
type fake struct {
	mu      sync.Mutex
	schema  []types.KeySchemaElement
	billing types.BillingMode
	since   time.Time
	status  types.TableStatus // after the first second
	creates int
	fail    map[string]error // by operation
}

func (f *fake) DescribeTable(
	_ context.Context, in *dynamodb.DescribeTableInput, _ ...func(*dynamodb.Options),
) (*dynamodb.DescribeTableOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fail["DescribeTable"]; err != nil {
		return nil, err
	}
	if f.schema == nil {
		return nil, &types.ResourceNotFoundException{}
	}
	status := f.status
	if time.Since(f.since) < time.Second {
		status = types.TableStatusCreating
	}
	return &dynamodb.DescribeTableOutput{Table: &types.TableDescription{
		TableName: in.TableName, KeySchema: f.schema, TableStatus: status,
	}}, nil
}

func (f *fake) CreateTable(
	_ context.Context, in *dynamodb.CreateTableInput, _ ...func(*dynamodb.Options),
) (*dynamodb.CreateTableOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.creates++
	if err := f.fail["CreateTable"]; err != nil {
		return nil, err
	}
	if f.schema != nil {
		return nil, &types.ResourceInUseException{}
	}
	f.schema, f.billing, f.since = in.KeySchema, in.BillingMode, time.Now()
	f.status = types.TableStatusActive
	return &dynamodb.CreateTableOutput{}, nil
}

func (f *fake) table() dynamotable.Table {
	return dynamotable.Table{
		DynamoDB: f, Name: "t", CallTimeout: time.Second,
		Key: []dynamotable.Attribute{
			{Name: "id", Type: types.ScalarAttributeTypeS}, {Name: "n", Type: types.ScalarAttributeTypeN},
		},
	}
}

// Several processes make one table, and each returns when it can be used.
func TestEnsure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, began := &fake{}, time.Now()
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				if err := f.table().Ensure(t.Context()); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took < time.Second || took > 3*time.Second {
					t.Errorf("it returned after %v", took)
				}
			})
		}
		group.Wait()
		if len(f.schema) != 2 || aws.ToString(f.schema[1].AttributeName) != "n" ||
			f.schema[1].KeyType != types.KeyTypeRange || f.billing != types.BillingModePayPerRequest {
			t.Errorf("%+v, %s", f.schema, f.billing)
		}
		creates := f.creates
		if err := f.table().Ensure(t.Context()); err != nil || f.creates != creates {
			t.Errorf("an existing table: %v, created %v", err, f.creates != creates)
		}
	})
}

// A table with another key, a refusal and a table that never becomes ACTIVE are errors.
func TestEnsureFails(t *testing.T) {
	for name, c := range map[string]struct {
		fake *fake
		want string
	}{
		"another key": {&fake{
			schema: []types.KeySchemaElement{{AttributeName: aws.String("id")}},
			status: types.TableStatusActive,
		}, "another primary key"},
		"no right to look": {&fake{
			fail: map[string]error{"DescribeTable": errors.New("denied")},
		}, "describe the table: denied"},
		"no right to create": {&fake{
			fail: map[string]error{"CreateTable": errors.New("denied")},
		}, "create the table: denied"},
		"never active": {&fake{
			schema: []types.KeySchemaElement{{}}, status: types.TableStatusDeleting,
		}, "wait for the table to be ACTIVE"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := c.fake.table().Ensure(ctx)
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %s", err, c.want)
				}
			})
		})
	}
}

// A table that is being deleted does not exist.
func TestExists(t *testing.T) {
	for name, c := range map[string]struct {
		fake *fake
		want bool
	}{
		"missing": {&fake{}, false},
		"active":  {&fake{schema: []types.KeySchemaElement{{}}, status: types.TableStatusActive}, true},
		"going":   {&fake{schema: []types.KeySchemaElement{{}}, status: types.TableStatusDeleting}, false},
	} {
		if got, err := c.fake.table().Exists(t.Context()); err != nil || got != c.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
