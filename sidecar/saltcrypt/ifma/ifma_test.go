package ifma

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"strings"
	"testing"
)

func newKey(tb testing.TB) (*rsa.PrivateKey, *Key) {
	tb.Helper()
	if !supported {
		tb.Skip("this processor has not got AVX-512 IFMA")
	}
	private, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		tb.Fatal(err)
	}
	k := New(private)
	if k == nil {
		tb.Fatal("New refused a good key")
	}
	return private, k
}

// compare holds Private against math/big.
func compare(tb testing.TB, private *rsa.PrivateKey, k *Key, c *big.Int) {
	tb.Helper()
	got, err := k.Private(c.FillBytes(make([]byte, keyBits/8)))
	if c.Cmp(private.N) >= 0 {
		if !errors.Is(err, ErrRange) {
			tb.Fatalf("a number beyond the modulus: %v", err)
		}
		return
	}
	if err != nil {
		tb.Fatal(err)
	}
	if want := new(big.Int).Exp(c, private.D, private.N).FillBytes(make([]byte, keyBits/8)); !bytes.Equal(got, want) {
		tb.Fatalf("%x to the power of d is another number", c)
	}
}

func TestPrivateIsMathBigs(t *testing.T) {
	for range 4 {
		private, k := newKey(t)
		one, two := big.NewInt(1), big.NewInt(2)
		p, q := private.Primes[0], private.Primes[1]
		for _, c := range []*big.Int{
			new(big.Int), one, two, p, q, new(big.Int).Sub(p, one), new(big.Int).Add(q, one),
			new(big.Int).Mul(p, two), new(big.Int).Sub(private.N, one), new(big.Int).Sub(private.N, p), private.N,
			new(big.Int).Lsh(one, keyBits-1), new(big.Int).Sub(new(big.Int).Lsh(one, 1040), one), new(big.Int).Lsh(one, 1040),
		} {
			compare(t, private, k, c)
		}
		for range 40 {
			c, err := rand.Int(rand.Reader, private.N)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, private, k, c)
		}
	}
}

// TestUnequalPrimes: one as large and one as small as primes of a key may be, in both orders.
func TestUnequalPrimes(t *testing.T) {
	newKey(t)
	e, one, two := big.NewInt(65537), big.NewInt(1), big.NewInt(2)
	from := func(start, step *big.Int) *big.Int {
		for p := new(big.Int).Set(start); ; p.Add(p, step) {
			if p.ProbablyPrime(10) && new(big.Int).GCD(nil, nil, e, new(big.Int).Sub(p, one)).Cmp(one) == 0 {
				return p
			}
		}
	}
	large := from(new(big.Int).Sub(new(big.Int).Lsh(one, primeBits), one), big.NewInt(-2))
	small := new(big.Int).Lsh(one, primeBits-1)
	small = from(small.Add(small, new(big.Int).Lsh(one, primeBits-24)).Add(small, one), two)
	for _, primes := range [][]*big.Int{{large, small}, {small, large}} {
		phi := new(big.Int).Mul(new(big.Int).Sub(large, one), new(big.Int).Sub(small, one))
		private := &rsa.PrivateKey{
			PublicKey: rsa.PublicKey{N: new(big.Int).Mul(large, small), E: int(e.Int64())},
			D:         new(big.Int).ModInverse(e, phi), Primes: primes,
		}
		private.Precompute()
		k := New(private)
		if k == nil {
			t.Fatal("New refused a good key")
		}
		for _, c := range []*big.Int{one, two, large, small, new(big.Int).Sub(private.N, one), new(big.Int).Sub(private.N, large), new(big.Int).Sub(large, one)} {
			compare(t, private, k, c)
		}
		for range 20 {
			c, err := rand.Int(rand.Reader, private.N)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, private, k, c)
		}
	}
}

// TestMultiply has the largest factors that may come, beside random ones, and looks at the size of what comes out.
func TestMultiply(t *testing.T) {
	private, k := newKey(t)
	value := func(x []uint64) *big.Int {
		v := new(big.Int)
		for i := lanes - 1; i >= 0; i-- {
			if x[i] > mask {
				t.Fatalf("digit %d is none: %#x", i, x[i])
			}
			v.Lsh(v, digitBits).Or(v, new(big.Int).SetUint64(x[i]))
		}
		return v
	}
	set := func(dst []uint64, v *big.Int) {
		v = new(big.Int).Set(v)
		for i := range dst {
			dst[i] = new(big.Int).And(v, big.NewInt(mask)).Uint64()
			v.Rsh(v, digitBits)
		}
	}
	for round := range 200 {
		var a, b, out pair
		for i, m := range private.Primes {
			twice := new(big.Int).Lsh(m, 1)
			for _, x := range []*pair{&a, &b} {
				v := new(big.Int).Sub(twice, big.NewInt(1))
				if round > 0 {
					var err error
					if v, err = rand.Int(rand.Reader, twice); err != nil {
						t.Fatal(err)
					}
				}
				set(x.of(i), v)
			}
		}
		k.multiply(&out, &a, &b)
		for i, m := range private.Primes {
			got := value(out.of(i))
			inverse := new(big.Int).ModInverse(new(big.Int).Lsh(big.NewInt(1), digits*digitBits), m)
			want := new(big.Int).Mul(value(a.of(i)), value(b.of(i)))
			want.Mul(want, inverse).Mod(want, m)
			if got.Cmp(new(big.Int).Lsh(m, 1)) >= 0 || new(big.Int).Mod(got, m).Cmp(want) != 0 {
				t.Fatalf("round %d, prime %d: wrong product", round, i)
			}
		}
		k.multiply(&a, &a, &b) // in place
		if a != out {
			t.Fatal("in place it is another product")
		}
	}
}

func TestChoose(t *testing.T) {
	newKey(t)
	var table [1 << windowBits]pair
	for i := range table {
		for j := range table[i] {
			table[i][j] = uint64(i*1000 + j)
		}
	}
	for i := range table {
		other := (i*7 + 3) % len(table)
		var got pair
		choose(&got, &table, uint64(i), uint64(other))
		for j := range got {
			want := i
			if j >= lanes {
				want = other
			}
			if got[j] != uint64(want*1000+j) {
				t.Fatalf("entries %d and %d: lane %d is %d", i, other, j, got[j])
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, bits := range []int{1024, 3072} {
		private, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			t.Fatal(err)
		}
		if New(private) != nil {
			t.Errorf("a key of %d bits was taken", bits)
		}
	}
}

// TestFaultsDoNotLeave: a result that is wrong for one prime would give the other one away.
func TestFaultsDoNotLeave(t *testing.T) {
	_, k := newKey(t)
	k.exponents[0][windows-1] ^= 1
	c := make([]byte, keyBits/8)
	c[200] = 7
	if out, err := k.Private(c); !errors.Is(err, ErrFaulty) || out != nil {
		t.Errorf("%x, %v", out, err)
	}
}

func TestPrintsNothing(t *testing.T) {
	_, k := newKey(t)
	var out strings.Builder
	fmt.Fprintf(&out, "%v|%+v|%#v|%x", k, k, k, k)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "key", k)
	if strings.Count(out.String(), "[redacted]") != 5 || out.Len() > 200 {
		t.Error(out.String())
	}
}

func FuzzPrivate(f *testing.F) {
	private, k := newKey(f)
	f.Add([]byte{1})
	f.Add(bytes.Repeat([]byte{0xff}, keyBits/8))
	f.Add(private.Primes[0].Bytes())
	f.Fuzz(func(t *testing.T, c []byte) {
		if len(c) > keyBits/8 {
			if _, err := k.Private(c); !errors.Is(err, ErrRange) {
				t.Fatal(err)
			}
			return
		}
		compare(t, private, k, new(big.Int).SetBytes(c))
	})
}

func BenchmarkPrivate(b *testing.B) {
	_, k := newKey(b)
	c := make([]byte, keyBits/8)
	c[10] = 3
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Private(c); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMultiply(b *testing.B) {
	_, k := newKey(b)
	x := k.squares
	for b.Loop() {
		k.multiply(&x, &x, &x)
	}
}
