package handler

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"reflect"

	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/failover"
	"github.com/sallyport/sallyport/stores/memory"
)

const (
	defaultPrefix    = "sallyport:"
	defaultBodyLimit = 64 << 10
	keySecretEnv     = "SALLYPORT_KEY_SECRET"
	cloudRunEnv      = "K_SERVICE" // set in every Cloud Run service
)

// Config configures [New].
type Config struct {
	// Store counts. It is required: that nil is an error keeps a forgotten setting from
	// becoming a limit per instance. A *failover.Store and a *memory.Store are used as
	// they are; any other is wrapped by failover.New(Store, Failover), which gives it
	// a fallback, a breaker and remembered refusals.
	Store stores.Store

	// Failover configures that wrapping. It is an error where nothing is wrapped. Its
	// Logger is this Config's if it has none.
	Failover failover.Config

	// ClientIP finds the client's address. It is required unless every policy is
	// [Manual]: keys that don't look at addresses fall back on them.
	ClientIP ClientIP

	// Policies are asked in this order; at least one. See [Policy].
	Policies []Policy

	// Allow is never counted and wins over Deny; Deny gets a 403. Both look at the
	// address that ClientIP finds and ask no store. A client whose address is not
	// proven is not taken for one on the Allow list, though his peer be on it. An
	// IPv4-mapped prefix is taken for the IPv4 prefix that it means; one that means all
	// of IPv4 or more is an error.
	Allow, Deny []netip.Prefix

	// Prefix begins all keys in stores: at most 128 bytes of printable ASCII;
	// default "sallyport:".
	Prefix string

	// KeySecret keys the hash that stands for an identity in a shared store. Default:
	// the environment's SALLYPORT_KEY_SECRET, else a public salt, which the log reports:
	// then whoever reads the store can guess addresses and e-mails. Changing it starts
	// all counters anew.
	KeySecret []byte

	// BodyLimit bounds what ByForm and ByJSON read of a request's body, in bytes; default
	// 64 KiB. They hold it in memory until the handler returns. A longer body is refused
	// with 413. Less than 0 is an error.
	BodyLimit int64

	// Headers is the form of the rate limit fields; default HeadersDraft8.
	Headers HeaderStyle

	// Verdicts puts the Verdict into the context of every request that passes, for
	// [FromContext]; policies in Signal mode do so anyway. It costs an allocation or two.
	Verdicts bool

	// Decorate has the last word on a refusal's headers, before the status is written:
	// for CORS where no outer layer does it.
	Decorate func(http.Header, *http.Request)

	// Observe sees each Verdict of Check and Handler, before the handler runs. No lock
	// is held; it must return quickly. The Verdict may be kept.
	Observe func(context.Context, Verdict)

	// Logger hears of changes of state, not of requests. Default slog.Default().
	Logger *slog.Logger
}

// common is what a guard and those made of it by With share.
type common struct {
	failover *failover.Store // over the shared store; nil: on memory alone
	memory   *memory.Store   // alone; nil: behind the failover

	keyer     *stores.Keyer
	plainKeys bool
	prefix    string
	mark      byte

	clientIP    ClientIP
	allow, deny []netip.Prefix
	bodyLimit   int64
	headers     HeaderStyle
	verdicts    bool
	decorate    func(http.Header, *http.Request)
	observe     func(context.Context, Verdict)
	logger      *slog.Logger
	reports     reports
}

// New returns a guard, or an error that says what is wrong and, for a policy, with
// which. The error wraps [stores.ErrInvalid], or errors.ErrUnsupported for a limit
// that the store can't serve. New sends nothing anywhere. It logs what is allowed
// but seldom meant: a public key salt on a shared store, policies out of order, and
// CloudRun elsewhere.
func New(cfg Config) (*Guard, error) {
	c := &common{
		clientIP: cfg.ClientIP,
		headers:  cfg.Headers,
		verdicts: cfg.Verdicts,
		decorate: cfg.Decorate,
		observe:  cfg.Observe,
		logger:   cfg.Logger,
		prefix:   cfg.Prefix,
	}
	if c.logger == nil {
		c.logger = slog.Default()
	}
	if c.prefix == "" {
		c.prefix = defaultPrefix
	}
	c.mark = markOf(c.prefix)
	if cfg.Headers > HeadersOff {
		return nil, fmt.Errorf("handler: %w header style %d", stores.ErrInvalid, cfg.Headers)
	}
	if c.bodyLimit = cfg.BodyLimit; c.bodyLimit < 0 {
		return nil, fmt.Errorf("handler: %w BodyLimit %d: want 0 (for %d) or more", stores.ErrInvalid, cfg.BodyLimit, defaultBodyLimit)
	} else if c.bodyLimit == 0 {
		c.bodyLimit = defaultBodyLimit
	}
	if err := cfg.ClientIP.check(); err != nil {
		return nil, fmt.Errorf("handler: ClientIP: %w", err)
	}
	var err error
	if c.allow, err = addressList("Allow", cfg.Allow); err != nil {
		return nil, err
	}
	if c.deny, err = addressList("Deny", cfg.Deny); err != nil {
		return nil, err
	}
	secret := cfg.KeySecret
	if len(secret) == 0 {
		secret = []byte(os.Getenv(keySecretEnv))
	}
	if c.keyer, err = stores.NewKeyer(cfg.Prefix, secret); err != nil {
		return nil, fmt.Errorf("handler: Prefix: %w", err)
	}
	if err := c.open(cfg); err != nil {
		return nil, err
	}
	g, err := newGuard(c, cfg.Policies)
	if err != nil {
		return nil, err
	}
	if c.clientIP.s != nil && c.clientIP.s.kind == ipCloudRun && os.Getenv(cloudRunEnv) == "" {
		c.logger.Warn("sallyport: the client address is taken as Cloud Run's proxy writes it, but this is not Cloud Run (" + cloudRunEnv + " is not set): reached directly, each client chooses his own address; want handler.Direct()")
	}
	if c.failover != nil && len(secret) == 0 {
		c.logger.Warn("sallyport: keys in the shared store are hashed with a public salt, so addresses and e-mails can be guessed from them; set Config.KeySecret or " + keySecretEnv)
	}
	if c.failover != nil && len(secret) > 0 && len(secret) < shortSecret {
		c.logger.Warn("sallyport: the secret of keys in the shared store is shorter than 16 bytes, so it can be guessed, and addresses and e-mails with it; want one such as openssl rand -hex 32 makes")
	}
	return g, nil
}

// shortSecret is how long a secret has to be that nobody guesses.
const shortSecret = 16

// open decides how cfg.Store is used.
func (c *common) open(cfg Config) error {
	// A constructor's nil pointer whose error went unread is as nil as nil.
	if v := reflect.ValueOf(cfg.Store); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return fmt.Errorf("handler: %w Config.Store: nil: want a store, memory.New's for limits per instance", stores.ErrInvalid)
	}
	switch s := cfg.Store.(type) {
	case *memory.Store:
		c.memory, c.plainKeys = s, true
	case *failover.Store:
		c.failover = s
	default:
		if cfg.Failover.Logger == nil {
			cfg.Failover.Logger = c.logger
		}
		wrapped, err := failover.New(cfg.Store, cfg.Failover)
		if err != nil {
			return fmt.Errorf("handler: %w", err)
		}
		c.failover = wrapped
		return nil
	}
	if !reflect.ValueOf(cfg.Failover).IsZero() {
		return fmt.Errorf("handler: %w Config.Failover: it is for a shared store that New wraps, and a %T is used as it is", stores.ErrInvalid, cfg.Store)
	}
	return nil
}

// supports asks the store for its word on a limit.
func (c *common) supports(limit stores.Limit) error {
	if c.failover != nil {
		return c.failover.Supports(limit)
	}
	return c.memory.Supports(limit)
}

// refund gives back to the one that counted the hit.
func (c *common) refund(ctx context.Context, hit stores.Hit, source stores.Source) error {
	if c.failover != nil {
		return c.failover.RefundAt(ctx, hit, source)
	}
	return c.memory.Refund(ctx, hit)
}

func (c *common) reset(ctx context.Context, hit stores.Hit) error {
	if c.failover != nil {
		return c.failover.Reset(ctx, hit)
	}
	return c.memory.Reset(ctx, hit)
}

// addressList brings prefixes into the form of the addresses that ClientIP finds.
func addressList(field string, prefixes []netip.Prefix) ([]netip.Prefix, error) {
	list := make([]netip.Prefix, 0, len(prefixes))
	for i, p := range prefixes {
		if !p.IsValid() {
			return nil, fmt.Errorf("handler: %w Config.%s[%d]: not a prefix", stores.ErrInvalid, field, i)
		}
		a := canonicalAddr(p.Addr())
		switch within := a.Is4() && !p.Addr().Is4(); {
		case within && p.Bits() > 96:
			p = netip.PrefixFrom(a, p.Bits()-96)
		case within && p.Bits() == 96, p.Addr().Is4In6():
			// All of IPv4 would be exempt for a translator's network, or nobody would match.
			return nil, fmt.Errorf("handler: %w Config.%s[%d]: %s: write IPv4 prefixes as such, and 0.0.0.0/0 for all of them", stores.ErrInvalid, field, i, p)
		}
		list = append(list, p.Masked())
	}
	return list, nil
}
