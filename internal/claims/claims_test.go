package claims_test

import (
	"context"
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/claims"
)

func TestText(t *testing.T) {
	for name, tt := range map[string]struct {
		value any
		want  string
	}{
		"text":          {"ann", "ann"},
		"awkward text":  {" a\x00\xff", " a\x00\xff"},
		"empty":         {"", ""},
		"null":          {nil, ""},
		"true":          {true, "true"},
		"false":         {false, "false"},
		"number":        {float64(7), "7"},
		"minus":         {float64(-7), "-7"},
		"zero":          {math.Copysign(0, -1), "0"},
		"largest":       {float64(1<<53 - 1), "9007199254740991"},
		"too large":     {float64(1 << 53), ""},
		"far too large": {1e300, ""},
		"too small":     {-float64(1 << 53), ""},
		"fraction":      {0.5, ""},
		"infinite":      {math.Inf(1), ""},
		"no number":     {math.NaN(), ""},
		"list":          {[]any{"ann"}, ""},
		"object":        {map[string]any{"sub": "ann"}, ""},
		"other type":    {json.Number("7"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := claims.With(t.Context(), func(asked string) any {
				require.Equal(t, "sub", asked)
				return tt.value
			})
			got, ok := claims.Text(ctx, "sub")
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.want != "", ok)
		})
	}
}

func TestNoClaims(t *testing.T) {
	for _, ctx := range []context.Context{t.Context(), claims.With(t.Context(), nil)} {
		got, ok := claims.Text(ctx, "sub")
		require.Empty(t, got)
		require.False(t, ok)
	}
}

// The innermost word holds: who has none hides those around him.
func TestInnermost(t *testing.T) {
	outer := claims.With(t.Context(), func(string) any { return "ann" })
	inner := claims.With(outer, func(string) any { return nil })
	_, ok := claims.Text(inner, "sub")
	require.False(t, ok)
	got, _ := claims.Text(outer, "sub")
	require.Equal(t, "ann", got)
}
