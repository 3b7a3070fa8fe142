package main

import (
	"context"
	"errors"
	"net/mail"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// maxAddress is RFC 5321's bound of an address, in bytes.
const maxAddress = 254

// Accounts is who has an account. Put one of your own into main.go: your database.
type Accounts interface {
	// Find returns the mailbox of the account that address means, as it is on file; ""
	// if there is none. The mail goes there and never to what was typed, because a
	// look-up may take for one what the world's mail servers take for two.
	//
	// It must take no more spellings for one than spelling does, by which mails are
	// counted: each spelling beyond that would have a mail of its own. An error reads as
	// no account. It must return when ctx ends, or the answer comes late and tells.
	Find(ctx context.Context, address string) (mailbox string, err error)
}

// spelling brings an address into the form under which accounts are looked up and, by
// the guard's Email key, mails are counted: no space around it, NFC, lower case.
func spelling(address string) string {
	return norm.NFC.String(strings.ToLower(norm.NFC.String(strings.TrimSpace(address))))
}

// isAddress tells whether s is one bare address, without a name, brackets or
// comments around it.
func isAddress(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && len(s) <= maxAddress && a.Name == "" && a.Address == s
}

// list are the accounts of this example: mailboxes by their spelling.
type list map[string]string

// listAccounts reads addresses with commas between.
func listAccounts(text string) (list, error) {
	accounts := make(list)
	for mailbox := range strings.SplitSeq(text, ",") {
		if mailbox = strings.TrimSpace(mailbox); !isAddress(mailbox) {
			return nil, errors.New("want addresses such as ann@example.com with commas between")
		}
		accounts[spelling(mailbox)] = mailbox
	}
	return accounts, nil
}

// Find implements Accounts.
func (l list) Find(_ context.Context, address string) (string, error) {
	return l[spelling(address)], nil
}
