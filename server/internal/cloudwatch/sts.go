package cloudwatch

import (
	"bytes"
	"context"
	"fmt"

	"github.com/runnel-stream/runnel/internal/wire"
)

// STS answers GetCallerIdentity, which the KPL asks for the account of its streams' ARNs.
type STS struct{}

// Serve implements wire.Service. Every caller is the root of the call's account: the server
// has no users, and any key may do anything in its account.
func (STS) Serve(_ context.Context, call *wire.Call) (wire.Answer, error) {
	if call.Operation != "GetCallerIdentity" {
		return wire.Answer{}, &wire.Error{
			Code: "UnknownOperationException", Query: "InvalidAction",
			Message: fmt.Sprintf("runnel implements only STS's GetCallerIdentity, not %q.",
				clipped(call.Operation)),
		}
	}
	account := call.World.Account // 12 digits
	var b bytes.Buffer
	fmt.Fprintf(&b, "    <Arn>arn:aws:iam::%s:root</Arn>\n    <UserId>%[1]s</UserId>\n"+
		"    <Account>%[1]s</Account>\n", account)
	return wire.Answer{Body: b.Bytes()}, nil
}
