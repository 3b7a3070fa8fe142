package handler

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/failover"
	"github.com/sallyport/sallyport/stores/memory"
)

type narrowStore struct{ *sharedStore }

func (narrowStore) Supports(l stores.Limit) error {
	if l.Algorithm != stores.Fixed {
		return errors.Join(errors.ErrUnsupported, errors.New("use a fixed window"))
	}
	return nil
}

func TestNewFailsLoudly(t *testing.T) {
	m, err := memory.New(memory.Config{})
	require.NoError(t, err)
	fo, err := failover.New(newSharedStore(t), failover.Config{})
	require.NoError(t, err)
	good := func() Config {
		return Config{Store: m, ClientIP: Direct(), Policies: []Policy{byIP("p", 1)}, Logger: new(logBuffer).logger()}
	}
	_, err = New(good())
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		change func(*Config)
		kind   error
		says   string
	}{
		"no store":            {func(c *Config) { c.Store = nil }, stores.ErrInvalid, "Config.Store"},
		"nil memory":          {func(c *Config) { c.Store = (*memory.Store)(nil) }, stores.ErrInvalid, "Config.Store"},
		"nil failover":        {func(c *Config) { c.Store = (*failover.Store)(nil) }, stores.ErrInvalid, "Config.Store"},
		"nil shared":          {func(c *Config) { c.Store = (*sharedStore)(nil) }, stores.ErrInvalid, "Config.Store"},
		"failover for memory": {func(c *Config) { c.Failover.Timeout = time.Second }, stores.ErrInvalid, "Config.Failover"},
		"failover for itself": {func(c *Config) { c.Store, c.Failover.OnChange = fo, func(failover.Change) {} }, stores.ErrInvalid, "Config.Failover"},
		"bad failover":        {func(c *Config) { c.Store, c.Failover.Timeout = newSharedStore(t), -1 }, stores.ErrInvalid, "Timeout"},
		"no client ip":        {func(c *Config) { c.ClientIP = ClientIP{} }, stores.ErrInvalid, "ClientIP"},
		"bad client ip":       {func(c *Config) { c.ClientIP = TrustedHops(0) }, stores.ErrInvalid, "ClientIP"},
		"no policies":         {func(c *Config) { c.Policies = nil }, stores.ErrInvalid, "at least one"},
		"one name twice":      {func(c *Config) { c.Policies = append(c.Policies, byIP("q", 1), byIP("p", 2)) }, stores.ErrInvalid, `"p"`},
		"no name":             {func(c *Config) { c.Policies[0].Name = "" }, stores.ErrInvalid, "name"},
		"long name":           {func(c *Config) { c.Policies[0].Name = strings.Repeat("n", 129) }, stores.ErrInvalid, "name"},
		"odd name":            {func(c *Config) { c.Policies[0].Name = "Kontaktformül" }, stores.ErrInvalid, "name"},
		"line in name":        {func(c *Config) { c.Policies[0].Name = "a\r\nSet-Cookie: b" }, stores.ErrInvalid, "name"},
		"quota 0":             {func(c *Config) { c.Policies[0].Limit.Quota = 0 }, stores.ErrInvalid, `policy "p"`},
		"quota -1":            {func(c *Config) { c.Policies[0].Limit.Quota = -1 }, stores.ErrInvalid, `policy "p"`},
		"least quota":         {func(c *Config) { c.Policies[0].Limit.Quota = -1 << 63 }, stores.ErrInvalid, `policy "p"`},
		"no window":           {func(c *Config) { c.Policies[0].Limit.Window = 0 }, stores.ErrInvalid, `policy "p"`},
		"no limit":            {func(c *Config) { c.Policies[0].Limit = stores.Limit{} }, stores.ErrInvalid, `policy "p"`},
		"no key":              {func(c *Config) { c.Policies[0].Key = Key{} }, stores.ErrInvalid, "key"},
		"mode":                {func(c *Config) { c.Policies[0].Mode = 9 }, stores.ErrInvalid, "mode"},
		"outage":              {func(c *Config) { c.Policies[0].Outage = 9 }, stores.ErrInvalid, "outage"},
		"unsupported": {func(c *Config) {
			c.Store, c.Policies[0].Limit = narrowStore{newSharedStore(t)}, stores.SlidingLog(5, time.Minute)
		}, errors.ErrUnsupported, "fixed window"},
		"prefix":                       {func(c *Config) { c.Prefix = "a\n" }, stores.ErrInvalid, "Prefix"},
		"body limit":                   {func(c *Config) { c.BodyLimit = -1 }, stores.ErrInvalid, "BodyLimit"},
		"headers":                      {func(c *Config) { c.Headers = 9 }, stores.ErrInvalid, "header style"},
		"allow":                        {func(c *Config) { c.Allow = []netip.Prefix{{}} }, stores.ErrInvalid, "Allow[0]"},
		"deny":                         {func(c *Config) { c.Deny = []netip.Prefix{netip.MustParsePrefix("::/0"), {}} }, stores.ErrInvalid, "Deny[1]"},
		"allow a translator's network": {func(c *Config) { c.Allow = mustPrefixes("64:ff9b::/96") }, stores.ErrInvalid, "0.0.0.0/0"},
		"allow all of IPv4, mapped":    {func(c *Config) { c.Allow = mustPrefixes("10.0.0.0/8", "::ffff:0.0.0.0/96") }, stores.ErrInvalid, "Allow[1]"},
		"deny more than the mapped":    {func(c *Config) { c.Deny = mustPrefixes("::ffff:0.0.0.0/90") }, stores.ErrInvalid, "Deny[0]"},
		"unsupported in plain":         {func(c *Config) { c.Policies[0].Limit.Algorithm = 99 }, stores.ErrInvalid, `policy "p"`},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good()
			tt.change(&cfg)
			g, err := New(cfg)
			require.Nil(t, g)
			require.ErrorIs(t, err, tt.kind)
			require.ErrorContains(t, err, tt.says)
			require.ErrorContains(t, err, "handler")
		})
	}
}

func TestManualNeedsNoClientIP(t *testing.T) {
	m, err := memory.New(memory.Config{})
	require.NoError(t, err)
	jobs := Policy{Name: "jobs", Limit: stores.FixedWindow(1, time.Minute), Key: Manual()}
	g, err := New(Config{Store: m, Policies: []Policy{jobs}})
	require.NoError(t, err)
	require.True(t, g.Check(get(client)).Allowed)
	_, err = g.With(byIP("p", 1))
	require.ErrorIs(t, err, stores.ErrInvalid)
	_, err = g.With()
	require.ErrorIs(t, err, stores.ErrInvalid)
	require.Zero(t, g.Stats().Shared)
}

func TestWarnings(t *testing.T) {
	everyone := Policy{Name: "everyone", Limit: stores.FixedWindow(1, time.Minute), Key: Everyone()}
	email := Policy{Name: "email", Limit: stores.FixedWindow(1, time.Minute), Key: ByHeader("X-Email").Email()}
	function := Policy{Name: "func", Limit: stores.FixedWindow(1, time.Minute), Key: ByFunc(func(*http.Request) string { return "x" })}
	for name, tt := range map[string]struct {
		policies []Policy
		warned   bool
	}{
		"right":             {[]Policy{byIP("ip", 1), email, everyone}, false},
		"func anywhere":     {[]Policy{function, byIP("ip", 1), function2(function), everyone}, false},
		"everyone first":    {[]Policy{everyone, byIP("ip", 1)}, true},
		"everyone, a func":  {[]Policy{everyone, function, byIP("ip", 1)}, true},
		"target first":      {[]Policy{email, byIP("ip", 1)}, true},
		"everyone, targets": {[]Policy{everyone, email}, true},
	} {
		log := new(logBuffer)
		guardOf(t, Config{Policies: tt.policies, Logger: log.logger()})
		require.Equal(t, tt.warned, strings.Contains(log.String(), "out of order"), name)
	}

	const salt = "public salt"
	for name, tt := range map[string]struct {
		cfg    Config
		env    string
		warned bool
	}{
		"shared":        {Config{Store: newSharedStore(t)}, "", true},
		"secret":        {Config{Store: newSharedStore(t), KeySecret: []byte("0123456789abcdef")}, "", false},
		"environment":   {Config{Store: newSharedStore(t)}, "0123456789abcdef", false},
		"memory, alone": {Config{}, "", false},
		"short":         {Config{Store: newSharedStore(t)}, "0123456789abcde", false},
	} {
		t.Setenv(keySecretEnv, tt.env)
		log := new(logBuffer)
		tt.cfg.Logger, tt.cfg.Policies = log.logger(), []Policy{byIP("p", 1)}
		guardOf(t, tt.cfg)
		require.Equal(t, tt.warned, strings.Contains(log.String(), salt), name)
		require.Equal(t, name == "short", strings.Contains(log.String(), "shorter than 16 bytes"), name)
	}
}

func function2(p Policy) Policy {
	p.Name += "2"
	return p
}

// A secret from the environment makes other keys than none, and the same as one in
// the Config.
func TestKeySecret(t *testing.T) {
	keyWith := func(env, secret string) string {
		t.Setenv(keySecretEnv, env)
		s := newSharedStore(t)
		g := guardOf(t, Config{Store: s, KeySecret: []byte(secret), Policies: []Policy{byIP("p", 1)}})
		g.Check(get(client))
		require.Len(t, s.keys, 1)
		require.True(t, strings.HasPrefix(s.keys[0], "sallyport:p:f1:600000:"), s.keys[0])
		return s.keys[0]
	}
	require.Equal(t, keyWith("a", ""), keyWith("b", "a"))
	require.NotEqual(t, keyWith("", ""), keyWith("a", ""))
}

// The caller's slices are his own.
func TestConfigIsCopied(t *testing.T) {
	policies := []Policy{byIP("p", 1)}
	deny := []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}
	g := guardOf(t, Config{Policies: policies, Deny: deny})
	policies[0].Name, policies[0].Limit.Quota = "q", 100
	deny[0] = netip.MustParsePrefix("0.0.0.0/0")
	require.True(t, g.Check(get(client)).Allowed)
	require.False(t, g.Check(get(client)).Allowed)
}

// CloudRun anywhere else lets clients choose their address, and the log says so.
func TestCloudRunElsewhere(t *testing.T) {
	for service, warns := range map[string]bool{"": true, "contact": false} {
		t.Setenv("K_SERVICE", service)
		log := new(logBuffer)
		guardOf(t, Config{ClientIP: CloudRun(), Policies: []Policy{byIP("p", 1)}, Logger: log.logger()})
		require.Equal(t, warns, strings.Contains(log.String(), "this is not Cloud Run"))
	}
}
