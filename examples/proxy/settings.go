package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"github.com/sallyport/sallyport/handler"
)

// configure reads the environment. Each error begins with the variable's name.
func configure(logger *slog.Logger) (c config, storeName string, err error) {
	c.logger = logger
	if c.upstream, err = parseUpstream(os.Getenv("UPSTREAM")); err != nil {
		return c, "", fmt.Errorf("UPSTREAM: %w", err)
	}
	if c.policies, err = readPolicies(os.Getenv("SALLYPORT_POLICIES")); err != nil {
		return c, "", fmt.Errorf("SALLYPORT_POLICIES: %w", err)
	}
	switch text := os.Getenv("SALLYPORT_CLIENT_IP"); {
	case text != "":
		if c.clientIP, err = handler.ParseClientIP(text); err != nil {
			return c, "", fmt.Errorf("SALLYPORT_CLIENT_IP: %w", err)
		}
	case onCloudRun():
		c.clientIP = handler.CloudRun()
	default:
		// Anywhere else X-Forwarded-For is the client's own invention, until you say which
		// proxy writes it.
		c.clientIP = handler.Direct()
	}
	c.store, storeName, err = openStore()
	return c, storeName, err
}

// parseUpstream wants a place and nothing else: a path would be a second place in which
// to say what a request is about. Errors don't repeat the text, which may hold a password.
func parseUpstream(text string) (*url.URL, error) {
	const example = "want one such as http://127.0.0.1:3000"
	if text == "" {
		return nil, errors.New("it is missing: " + example)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("no URL: " + example)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("neither http:// nor https://: " + example)
	case u.Hostname() == "":
		return nil, errors.New("no host in it: " + example)
	case u.User != nil:
		return nil, errors.New("a user or password in it: " + example)
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("a path or query in it: " + example)
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
}

// readPolicies reads the list itself, or the file that is named behind an "@".
func readPolicies(text string) ([]handler.Policy, error) {
	if text == "" {
		return nil, errors.New(`they are missing: want a list such as [{"name": "all", "limit": "sliding 100/1m", "key": "ip"}]`)
	}
	data := []byte(text)
	if path, isFile := strings.CutPrefix(text, "@"); isFile {
		var err error
		if data, err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	return handler.ParsePolicies(data)
}
