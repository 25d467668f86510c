// SPDX-License-Identifier: Apache-2.0

package server

import (
	"reflect"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// TestSameCacheLooksAtEveryField: each field that changes is told to readers, also one of a site, and one that was published does
// not change with what it was made of.
func TestSameCacheLooksAtEveryField(t *testing.T) {
	base := func() *wire.CacheStatus {
		return &wire.CacheStatus{
			Ready: pointer(true), ActiveSite: "paris", Transition: &wire.CacheTransition{To: "rome"}, LastPromotion: &wire.CachePromotion{To: "paris"},
			Sites: []wire.CacheSiteStatus{{Name: "paris", BehindBytes: pointer(int64(1)), BehindChanges: pointer(int64(1)), UsedMemoryBytes: pointer(int64(1))}},
		}
	}
	if !sameCache(base(), base()) || !sameCache(nil, nil) || sameCache(base(), nil) || sameCache(nil, base()) {
		t.Error("two that say the same differ, or one is like none")
	}
	changes := func(make func(*wire.CacheStatus) reflect.Value) {
		typ := make(base()).Type()
		for i := range typ.NumField() {
			changed, published := base(), cloneCache(base())
			poke(t, make(changed).Field(i))
			if sameCache(published, changed) {
				t.Errorf("%s.%s: nobody is told", typ.Name(), typ.Field(i).Name)
			}
			live := base()
			published = cloneCache(live)
			if f := make(live).Field(i); f.Kind() == reflect.Pointer {
				poke(t, f.Elem())
				if !sameCache(published, base()) {
					t.Errorf("%s.%s: what was published changes", typ.Name(), typ.Field(i).Name)
				}
			}
		}
	}
	changes(func(c *wire.CacheStatus) reflect.Value { return reflect.ValueOf(c).Elem() })
	changes(func(c *wire.CacheStatus) reflect.Value { return reflect.ValueOf(&c.Sites[0]).Elem() })
	changes(func(c *wire.CacheStatus) reflect.Value { return reflect.ValueOf(c.Transition).Elem() })
	changes(func(c *wire.CacheStatus) reflect.Value { return reflect.ValueOf(c.LastPromotion).Elem() })
}

// poke makes a value another one.
func poke(t *testing.T, v reflect.Value) {
	t.Helper()
	switch now := v.Interface().(type) {
	case string:
		v.SetString(now + "x")
	case int64:
		v.SetInt(now + 1)
	case bool:
		v.SetBool(!now)
	case time.Time:
		v.Set(reflect.ValueOf(now.Add(time.Second)))
	default:
		switch v.Kind() {
		case reflect.Pointer, reflect.Slice:
			v.SetZero()
		case reflect.Struct:
			poke(t, v.Field(0))
		default:
			t.Fatalf("this test does not know %s", v.Type())
		}
	}
}
