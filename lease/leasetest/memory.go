package leasetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

type item = map[string]types.AttributeValue

// Memory is a DynamoDB in memory for tests that want a fault at one exact call. It understands the
// requests of package lease and refuses all others. It is safe for concurrent use.
type Memory struct {
	// Before is called before each call is executed. Its error is the answer of the call, which
	// then has no effect. It may block.
	Before func(ctx context.Context, op, key string) error
	// After is called when a call has been executed; its error replaces the answer.
	After func(ctx context.Context, op, key string) error
	// PageSize is the number of items on a page of Scan; default 1000.
	PageSize int
	// NoIndex refuses to add an index, as a role without dynamodb:UpdateTable is refused.
	NoIndex bool

	mu     sync.Mutex
	tables map[string]map[string]item
}

// run executes a call between its two hooks.
func (m *Memory) run(ctx context.Context, op, key string, call func() error) error {
	if m.Before != nil {
		if err := m.Before(ctx, op, key); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	err := call()
	m.mu.Unlock()
	if m.After != nil {
		if lost := m.After(ctx, op, key); lost != nil {
			return lost
		}
	}
	return err
}

func keyOf(row item) string {
	for _, name := range []string{"leaseKey", "key"} {
		if s, ok := row[name].(*types.AttributeValueMemberS); ok {
			return s.Value
		}
	}
	return ""
}

func (m *Memory) table(name *string) (map[string]item, error) {
	if t, ok := m.tables[aws.ToString(name)]; ok {
		return t, nil
	}
	return nil, &types.ResourceNotFoundException{
		Message: aws.String("Requested resource not found: " + aws.ToString(name)),
	}
}

// CreateTable implements lease.DynamoDBAPI.
func (m *Memory) CreateTable(
	ctx context.Context, in *dynamodb.CreateTableInput, _ ...func(*dynamodb.Options),
) (*dynamodb.CreateTableOutput, error) {
	return &dynamodb.CreateTableOutput{}, m.run(ctx, "CreateTable", "", func() error {
		if _, err := m.table(in.TableName); err == nil {
			return &types.ResourceInUseException{}
		}
		if m.tables == nil {
			m.tables = map[string]map[string]item{}
		}
		m.tables[*in.TableName] = map[string]item{}
		return nil
	})
}

// DescribeTable implements lease.DynamoDBAPI.
func (m *Memory) DescribeTable(
	ctx context.Context, in *dynamodb.DescribeTableInput, _ ...func(*dynamodb.Options),
) (*dynamodb.DescribeTableOutput, error) {
	err := m.run(ctx, "DescribeTable", "", func() error {
		_, err := m.table(in.TableName)
		return err
	})
	if err != nil {
		return nil, err
	}
	table := &types.TableDescription{
		TableName: in.TableName, TableStatus: types.TableStatusActive,
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("leaseKey")}},
	}
	if !m.NoIndex {
		table.GlobalSecondaryIndexes = []types.GlobalSecondaryIndexDescription{{
			IndexName:   aws.String("LeaseOwnerToLeaseKeyIndex"),
			IndexStatus: types.IndexStatusActive,
		}}
	}
	return &dynamodb.DescribeTableOutput{Table: table}, nil
}

// UpdateTable implements lease.DynamoDBAPI: it refuses every change.
func (m *Memory) UpdateTable(
	ctx context.Context, _ *dynamodb.UpdateTableInput, _ ...func(*dynamodb.Options),
) (*dynamodb.UpdateTableOutput, error) {
	return nil, m.run(ctx, "UpdateTable", "", func() error {
		return &smithy.GenericAPIError{
			Code:    "AccessDeniedException",
			Message: "not authorized to perform dynamodb:UpdateTable",
		}
	})
}

// Query implements lease.DynamoDBAPI, for the index by owner.
func (m *Memory) Query(
	ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options),
) (*dynamodb.QueryOutput, error) {
	out := &dynamodb.QueryOutput{}
	err := m.run(ctx, "Query", "", func() error {
		t, err := m.table(in.TableName)
		if err != nil {
			return err
		}
		if m.NoIndex || aws.ToString(in.KeyConditionExpression) != "#owner = :owner" {
			return &smithy.GenericAPIError{Code: "ValidationException", Message: "no such index"}
		}
		for _, key := range slices.Sorted(maps.Keys(t)) {
			owner := t[key][in.ExpressionAttributeNames["#owner"]]
			if show(owner) == show(in.ExpressionAttributeValues[":owner"]) {
				out.Items = append(out.Items, item{"leaseKey": t[key]["leaseKey"]})
			}
		}
		return nil
	})
	return out, err
}

// PutItem implements lease.DynamoDBAPI.
func (m *Memory) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	key := keyOf(in.Item)
	return &dynamodb.PutItemOutput{}, m.run(ctx, "PutItem", key, func() error {
		t, err := m.table(in.TableName)
		if err != nil {
			return err
		}
		err = check(t[key], in.ConditionExpression, in.ExpressionAttributeNames,
			in.ExpressionAttributeValues)
		if err == nil {
			t[key] = maps.Clone(in.Item)
		}
		return err
	})
}

// GetItem implements lease.DynamoDBAPI.
func (m *Memory) GetItem(
	ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options),
) (*dynamodb.GetItemOutput, error) {
	out := &dynamodb.GetItemOutput{}
	err := m.run(ctx, "GetItem", keyOf(in.Key), func() error {
		t, err := m.table(in.TableName)
		if err == nil {
			out.Item = maps.Clone(t[keyOf(in.Key)])
		}
		return err
	})
	return out, err
}

// UpdateItem implements lease.DynamoDBAPI.
func (m *Memory) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	key := keyOf(in.Key)
	out := &dynamodb.UpdateItemOutput{}
	return out, m.run(ctx, "UpdateItem", key, func() error {
		t, err := m.table(in.TableName)
		if err != nil {
			return err
		}
		err = check(t[key], in.ConditionExpression, in.ExpressionAttributeNames,
			in.ExpressionAttributeValues)
		if err != nil {
			return err
		}
		row := maps.Clone(t[key])
		if row == nil {
			row = maps.Clone(in.Key)
		}
		err = apply(row, aws.ToString(in.UpdateExpression), in.ExpressionAttributeNames,
			in.ExpressionAttributeValues)
		if err == nil {
			switch in.ReturnValues {
			case types.ReturnValueAllNew:
				out.Attributes = maps.Clone(row)
			case types.ReturnValueUpdatedOld: // of the whole row, which has no other use here
				out.Attributes = maps.Clone(t[key])
			}
			t[key] = row
		}
		return err
	})
}

// DeleteItem implements lease.DynamoDBAPI.
func (m *Memory) DeleteItem(
	ctx context.Context, in *dynamodb.DeleteItemInput, _ ...func(*dynamodb.Options),
) (*dynamodb.DeleteItemOutput, error) {
	key := keyOf(in.Key)
	return &dynamodb.DeleteItemOutput{}, m.run(ctx, "DeleteItem", key, func() error {
		t, err := m.table(in.TableName)
		if err != nil {
			return err
		}
		err = check(t[key], in.ConditionExpression, in.ExpressionAttributeNames,
			in.ExpressionAttributeValues)
		if err == nil {
			delete(t, key)
		}
		return err
	})
}

// Scan implements lease.DynamoDBAPI.
func (m *Memory) Scan(
	ctx context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options),
) (*dynamodb.ScanOutput, error) {
	out := &dynamodb.ScanOutput{}
	size := m.PageSize
	if size == 0 {
		size = 1000
	}
	err := m.run(ctx, "Scan", "", func() error {
		t, err := m.table(in.TableName)
		if err != nil {
			return err
		}
		after := keyOf(in.ExclusiveStartKey)
		for _, key := range slices.Sorted(maps.Keys(t)) {
			if key <= after {
				continue
			}
			if len(out.Items) == size {
				last := keyOf(out.Items[size-1])
				out.LastEvaluatedKey = item{"leaseKey": &types.AttributeValueMemberS{Value: last}}
				break
			}
			out.Items = append(out.Items, maps.Clone(t[key]))
		}
		return nil
	})
	return out, err
}

// check evaluates terms that are joined by AND: "a = :b", "a < :b" and "a >= :b" of numbers,
// attribute_exists, attribute_not_exists, attribute_type, and such terms in parentheses that are
// joined by OR.
func check(row item, expression *string, names map[string]string, values item) error {
	if expression == nil {
		return fmt.Errorf("a write without a condition")
	}
	for term := range strings.SplitSeq(*expression, " AND ") {
		holds := false
		alternatives := strings.TrimPrefix(term, "(")
		if strings.HasPrefix(term, "(") {
			alternatives = strings.TrimSuffix(alternatives, ")")
		}
		for one := range strings.SplitSeq(alternatives, " OR ") {
			yes, err := checkOne(row, one, names, values)
			if err != nil {
				return err
			}
			holds = holds || yes
		}
		if !holds {
			return &types.ConditionalCheckFailedException{
				Message: aws.String("The conditional request failed"), Item: maps.Clone(row),
			}
		}
	}
	return nil
}

func checkOne(row item, term string, names map[string]string, values item) (bool, error) {
	if name, value, equal := strings.Cut(term, " = "); equal {
		there, exists := row[names[name]]
		return exists && show(there) == show(values[value]), nil
	}
	if name, value, less := strings.Cut(term, " < "); less {
		return numberOf(row[names[name]]) < numberOf(values[value]), nil
	}
	if name, value, enough := strings.Cut(term, " >= "); enough {
		return numberOf(row[names[name]]) >= numberOf(values[value]), nil
	}
	fn, rest, ok := strings.Cut(strings.TrimSuffix(term, ")"), "(")
	argument, kind, _ := strings.Cut(rest, ", ")
	there, exists := row[names[argument]]
	switch {
	case ok && fn == "attribute_exists":
		return exists, nil
	case ok && fn == "attribute_not_exists":
		return !exists, nil
	case ok && fn == "attribute_type" && show(values[kind]) == "S NULL":
		_, null := there.(*types.AttributeValueMemberNULL)
		return null, nil
	default:
		return false, fmt.Errorf("not understood: %q", term)
	}
}

func show(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return "S " + v.Value
	case *types.AttributeValueMemberN:
		return "N " + v.Value
	default:
		return fmt.Sprintf("%T", v)
	}
}

// apply executes the clauses SET a = :b, REMOVE a and ADD a :b.
func apply(row item, expression string, names map[string]string, values item) error {
	clause := ""
	for part := range strings.SplitSeq(expression, ", ") {
		words := strings.Fields(part)
		for len(words) > 0 {
			switch {
			case words[0] == "SET" || words[0] == "REMOVE" || words[0] == "ADD":
				clause, words = words[0], words[1:]
			case clause == "SET" && len(words) >= 3 && words[1] == "=":
				row[names[words[0]]] = values[words[2]]
				words = words[3:]
			case clause == "REMOVE":
				delete(row, names[words[0]])
				words = words[1:]
			case clause == "ADD" && len(words) >= 2:
				row[names[words[0]]] = sum(row[names[words[0]]], values[words[1]])
				words = words[2:]
			default:
				return fmt.Errorf("not understood: %q in %q", part, expression)
			}
		}
	}
	return nil
}

func sum(a, b types.AttributeValue) types.AttributeValue {
	total := numberOf(a) + numberOf(b)
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(total, 10)}
}

func numberOf(v types.AttributeValue) (n int64) {
	if v, ok := v.(*types.AttributeValueMemberN); ok {
		n, _ = strconv.ParseInt(v.Value, 10, 64)
	}
	return n
}
