package dynamo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
)

// The attributes of the table that its template has to name.
const (
	KeyAttribute = "pk" // hash key, a string
	TTLAttribute = "x"  // time to live, a number: epoch seconds, an hour or more after the window's end
)

// undatedTimeout bounds a decision whose context has no deadline.
const undatedTimeout = 10 * time.Second

// Client is what a Store needs of a [dynamodb.Client].
type Client interface {
	UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	GetItem(ctx context.Context, in *dynamodb.GetItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
}

// Config is what New needs.
type Config struct {
	// Client is required. Its own retries are not used (see the package comment);
	// its HTTP client should let go of idle connections after a few seconds where
	// the process may be frozen, as FromEnv's does.
	Client Client

	// Table is the name or ARN of the table: required.
	Table string

	// Logger hears of a local clock that is off; nil means slog.Default().
	Logger *slog.Logger
}

// Store counts in one table. It is safe for concurrent use, and several Stores may
// share a table. A nil Store answers everything with stores.ErrMisconfigured.
type Store struct {
	client Client
	table  string
	optFns []func(*dynamodb.Options) // of every call
	clock  clock
	hints  *hints
}

var (
	_ Client           = (*dynamodb.Client)(nil)
	_ stores.Store     = (*Store)(nil)
	_ stores.Batcher   = (*Store)(nil)
	_ stores.Peeker    = (*Store)(nil)
	_ stores.Resetter  = (*Store)(nil)
	_ stores.Refunder  = (*Store)(nil)
	_ stores.Debtor    = (*Store)(nil)
	_ stores.Supporter = (*Store)(nil)
)

// New returns a Store over the table. It makes no call. The error wraps
// stores.ErrMisconfigured.
func New(cfg Config) (*Store, error) {
	if c, ok := cfg.Client.(*dynamodb.Client); cfg.Client == nil || ok && c == nil {
		return nil, fmt.Errorf("%w: dynamo: no client", stores.ErrMisconfigured)
	}
	if err := checkTable(cfg.Table); err != nil {
		return nil, err
	}
	logger := cfg.Logger
	if logger == nil {
		logger = slog.Default()
	}
	return &Store{
		client: cfg.Client,
		table:  cfg.Table,
		optFns: []func(*dynamodb.Options){resendUnsentOnly},
		clock:  clock{read: time.Now, logger: logger},
		hints:  newHints(maxHints),
	}, nil
}

// checkTable holds table against the service's rule for names, 3 to 255 of a-z A-Z
// 0-9 _ - and the dot, or for ARNs.
func checkTable(table string) error {
	longest, also := 255, ""
	if strings.HasPrefix(table, "arn:") {
		longest, also = 1024, ":/"
	}
	if len(table) < 3 || len(table) > longest {
		return fmt.Errorf("%w: dynamo: a table name of %d bytes: want 3 to %d", stores.ErrMisconfigured, len(table), longest)
	}
	for i := 0; i < len(table); i++ {
		c := table[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("_-."+also, c) < 0:
			return fmt.Errorf("%w: dynamo: byte %d of the table name is none of a-z A-Z 0-9 _ - and the dot", stores.ErrMisconfigured, i)
		}
	}
	return nil
}

// Supports returns nil for every limit but a log of more than 100: each of its stamps
// takes room in the item and in the expressions.
func (s *Store) Supports(limit stores.Limit) error {
	if limit.Algorithm == stores.Log && limit.Quota > maxLog {
		return fmt.Errorf("dynamo: no log of %d: at most %d; use a sliding window, whose items do not grow: %w", limit.Quota, maxLog, errors.ErrUnsupported)
	}
	return nil
}

// admit says whether a call about hit may be made at all.
func (s *Store) admit(ctx context.Context, hit stores.Hit) error {
	if s == nil || s.client == nil {
		return &fault.Error{Kind: stores.ErrMisconfigured, Text: "dynamo: a Store that New did not make", Definite: true, Lasting: true}
	}
	if err := hit.Validate(); err != nil {
		return err
	}
	if err := s.Supports(hit.Limit); err != nil {
		return err
	}
	return ctx.Err()
}

// bounded gives ctx a deadline if it has none, so that a silent server can't hold a
// caller for ever.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, dated := ctx.Deadline(); dated {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, undatedTimeout)
}
