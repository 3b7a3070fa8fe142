// Command attack measures the forgiveness cost of the memory store: how many
// requests somebody must send until a full store forgets what his own record says,
// while he keeps silent under his own key. A plain LRU forgets after as many
// requests as it holds keys, whoever the offender was.
//
// It does so for every way of counting but the log, whose keys take the more room the
// more they have used. It tries several floods against each offender, prints what the
// cheapest of them cost beside the bar, and exits with 1 if a bar is missed.
package main
