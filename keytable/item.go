package keytable

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel/keyspace"
)

// The table's primary key is id and n. Its items are
//
//	head      0         format, space, version: the last change's number
//	log       version   changes: the changes of that version, as JSON
//	key/NAME  0         hashKey, rate, since: the version of its last change, movingTo
//	session   a number  beat, drained, expiry: see Session
const (
	attrID      = "id"
	attrN       = "n"
	attrFormat  = "format"
	attrSpace   = "space"
	attrVersion = "version"
	attrChanges = "changes"
	attrKey     = "hashKey"
	attrRate    = "rate"
	attrSince   = "since"
	attrTo      = "movingTo"
	attrBeat    = "beat"
	attrDrained = "drained"
	attrExpiry  = "expiry" // ms

	idHead    = "head"
	idLog     = "log"
	idKey     = "key/" // and the name
	idSession = "session"
)

// format is the number of this layout.
const format = 1

type item = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func primary(id string, n int64) item { return item{attrID: str(id), attrN: num(n)} }

func text(i item, attribute string) string {
	if s, ok := i[attribute].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func number(i item, attribute string) (int64, error) {
	n, ok := i[attribute].(*types.AttributeValueMemberN)
	if !ok {
		return 0, fmt.Errorf("%w: item %q has no number %s", ErrDamagedTable, text(i, attrID),
			attribute)
	}
	value, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: item %q: %s: %w", ErrDamagedTable, text(i, attrID),
			attribute, err)
	}
	return value, nil
}

// encodeRow returns the item of a name.
func encodeRow(name string, r *row) item {
	i := primary(idKey+name, 0)
	i[attrKey] = str(r.Key.String())
	i[attrRate] = &types.AttributeValueMemberN{Value: strconv.FormatUint(r.Rate, 10)}
	i[attrSince] = num(r.Since)
	if r.To != nil {
		i[attrTo] = str(r.To.String())
	}
	return i
}

// decodeRow reads the item of a name; named is false for items of other kinds. The errors wrap
// ErrDamagedTable.
func decodeRow(i item) (name string, r *row, named bool, err error) {
	name, named = strings.CutPrefix(text(i, attrID), idKey)
	if !named {
		return "", nil, false, nil
	}
	r = &row{}
	fail := func(err error) (string, *row, bool, error) {
		return "", nil, true, fmt.Errorf("%w: name %q: %w", ErrDamagedTable, name, err)
	}
	if err := checkName(name); err != nil {
		return fail(err)
	}
	if r.Key, err = keyspace.Parse(text(i, attrKey)); err != nil {
		return fail(err)
	}
	rate, ok := i[attrRate].(*types.AttributeValueMemberN)
	if !ok {
		return fail(errors.New("it has no rate"))
	}
	if r.Rate, err = strconv.ParseUint(rate.Value, 10, 64); err != nil {
		return fail(err)
	}
	if r.Since, err = number(i, attrSince); err != nil {
		return fail(err)
	}
	if i[attrTo] != nil {
		to, err := keyspace.Parse(text(i, attrTo))
		if err != nil {
			return fail(err)
		}
		r.To = &to
	}
	return name, r, true, nil
}
