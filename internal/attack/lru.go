package main

import (
	"container/list"
	"strconv"
)

// plainLRU returns what the cheapest flood costs against a table that forgets the
// key it has not seen for longest. It is what the store is compared with.
func plainLRU(maxKeys, hits int) int {
	order := list.New()
	keys := make(map[string]*list.Element)
	touch := func(key string) {
		if e := keys[key]; e != nil {
			order.MoveToFront(e)
			return
		}
		if len(keys) == maxKeys {
			oldest := order.Back()
			delete(keys, order.Remove(oldest).(string))
		}
		keys[key] = order.PushFront(key)
	}
	for range hits {
		touch("offender")
	}
	for sent := 1; ; sent++ {
		touch("flood" + strconv.Itoa(sent))
		if keys["offender"] == nil {
			return sent
		}
	}
}
