package dynamo

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
	"github.com/runnel-stream/runnel/server/internal/memlimit"
)

// Config configures a Service.
type Config struct {
	Items  *itemstore.Store // required
	Now    func() time.Time // the server's clock; required
	Logger *slog.Logger     // gets creations and deletions of tables; default slog.Default()
	// Memory is the limit on the memory of all data, if they are kept in memory. Default nil: none.
	Memory *memlimit.Limit
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Validate reports every fault of the configuration.
func (c Config) Validate() error {
	var faults []error
	if c.Items == nil {
		faults = append(faults, errors.New("dynamo: Items is missing: want the item store"))
	}
	if c.Now == nil {
		faults = append(faults, errors.New("dynamo: Now is missing: want the server's clock"))
	}
	return errors.Join(faults...)
}

// Service answers DynamoDB calls. Safe for concurrent use.
type Service struct {
	items  *itemstore.Store
	now    func() time.Time
	logger *slog.Logger
	memory *memlimit.Limit
	turns  chan struct{} // has an element for each long body that is decoded
	pages  chan struct{} // has one for each long page that is read
	// returns has one for each write that makes a long answer of the items that it returns.
	returns chan struct{}
}

var _ wire.Service = (*Service)(nil)

// New returns a service on cfg.Items. cfg must pass Validate.
func New(cfg Config) *Service {
	cfg = cfg.withDefaults()
	return &Service{
		items: cfg.Items, now: cfg.Now, logger: cfg.Logger, memory: cfg.Memory,
		turns: make(chan struct{}, turns), pages: make(chan struct{}, turns),
		returns: make(chan struct{}, turns),
	}
}

// operation answers one kind of call.
type operation func(s *Service, ctx context.Context, call *wire.Call) ([]byte, error)

var operations = map[string]operation{
	"CreateTable":   (*Service).createTable,
	"DeleteItem":    (*Service).deleteItem,
	"DeleteTable":   (*Service).deleteTable,
	"DescribeTable": (*Service).describeTable,
	"GetItem":       (*Service).getItem,
	"ListTables":    (*Service).listTables,
	"PutItem":       (*Service).putItem,
	"Query":         (*Service).query,
	"Scan":          (*Service).scan,
	"UpdateItem":    (*Service).updateItem,
	"UpdateTable":   (*Service).updateTable,

	"DescribeContinuousBackups": (*Service).describeContinuousBackups,
	"TransactWriteItems":        (*Service).transactWriteItems,
	"UpdateContinuousBackups":   (*Service).updateContinuousBackups,
}

// Serves reports whether the subset has an operation.
func Serves(operation string) bool {
	_, ok := operations[operation]
	return ok
}

// tableNamed returns the TableName of a request, for the log; "" if there is none.
func tableNamed(body []byte) string {
	var named struct{ TableName string }
	_ = json.Unmarshal(body, &named) // the operation reports the faults
	return named.TableName
}

// Serve implements wire.Service. An error is an *wire.Error, or comes from the log or the
// context; in the latter case the outcome of a write is unknown.
func (s *Service) Serve(ctx context.Context, call *wire.Call) (wire.Answer, error) {
	answer, known := operations[call.Operation]
	if !known {
		return wire.Answer{}, &wire.Error{
			Code:    coralService + "UnknownOperationException",
			Message: "runnel's DynamoDB subset has no operation " + call.Operation,
		}
	}
	if call.Facts != nil {
		call.Facts.Table = tableNamed(call.Body)
	}
	if len(call.Body) >= longBody {
		with, end, err := s.turn(ctx)
		if err != nil {
			return wire.Answer{}, err
		}
		defer end()
		ctx = with
	}
	body, err := answer(s, ctx, call)
	return wire.Answer{Body: body}, err
}
