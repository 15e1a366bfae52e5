package fastrsa

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"runtime"
	"strings"
	"testing"
)

// each runs a test with every engine that this processor has.
func each(t *testing.T, test func(*testing.T, engine)) {
	if len(engines) == 0 {
		t.Skip("this processor has none of the instructions")
	}
	for _, e := range engines {
		t.Run(e.String(), func(t *testing.T) { test(t, e) })
	}
}

func generate(tb testing.TB, e engine) (*rsa.PrivateKey, *Key) {
	tb.Helper()
	private, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		tb.Fatal(err)
	}
	k := newKey(private, e)
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

func TestPrivateIsMathBigs(t *testing.T) { each(t, testPrivateIsMathBigs) }

func testPrivateIsMathBigs(t *testing.T, e engine) {
	for range 4 {
		private, k := generate(t, e)
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
func TestUnequalPrimes(t *testing.T) { each(t, testUnequalPrimes) }

func testUnequalPrimes(t *testing.T, e engine) {
	exponent, one, two := big.NewInt(65537), big.NewInt(1), big.NewInt(2)
	from := func(start, step *big.Int) *big.Int {
		for p := new(big.Int).Set(start); ; p.Add(p, step) {
			if p.ProbablyPrime(10) && new(big.Int).GCD(nil, nil, exponent, new(big.Int).Sub(p, one)).Cmp(one) == 0 {
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
			PublicKey: rsa.PublicKey{N: new(big.Int).Mul(large, small), E: int(exponent.Int64())},
			D:         new(big.Int).ModInverse(exponent, phi), Primes: primes,
		}
		private.Precompute()
		k := newKey(private, e)
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
func TestMultiply(t *testing.T) { each(t, testMultiply) }

func testMultiply(t *testing.T, e engine) {
	private, k := generate(t, e)
	largest := uint64(mask)
	if e == fma {
		largest++
	}
	value := func(x []uint64) *big.Int {
		v := new(big.Int)
		for i := digits - 1; i >= 0; i-- {
			if d := x[e.lane(i)]; d > largest {
				t.Fatalf("digit %d is none: %#x", i, d)
			} else {
				v.Lsh(v, digitBits).Add(v, new(big.Int).SetUint64(d))
			}
		}
		return v
	}
	set := func(dst []uint64, v *big.Int) {
		v = new(big.Int).Set(v)
		for i := range digits {
			dst[e.lane(i)] = new(big.Int).And(v, big.NewInt(mask)).Uint64()
			v.Rsh(v, digitBits)
		}
	}
	// swell gives a digit that is nought one of the next, where the engine knows such digits.
	swell := func(x []uint64) {
		for i := range digits - 1 {
			if digit, next := &x[e.lane(i)], &x[e.lane(i+1)]; e == fma && *digit == 0 && *next > 0 {
				*digit, *next = largest, *next-1
			}
		}
	}
	holes := new(big.Int)
	for i := range digits / 2 {
		holes.SetBit(holes, (2*i+1)*digitBits, 1)
	}
	for round := range 400 {
		var a, b, out pair
		for i, m := range private.Primes {
			four := new(big.Int).Lsh(m, 2)
			for _, x := range []*pair{&a, &b} {
				v := new(big.Int).Sub(four, big.NewInt(1))
				switch round {
				case 0:
				case 1:
					v.SetInt64(0)
				case 2:
					v.Set(holes)
				case 3: // its digits are as large as they can be, but for the highest one
					v.Lsh(big.NewInt(1), 19*digitBits).Sub(v, big.NewInt(1))
				default:
					var err error
					if v, err = rand.Int(rand.Reader, four); err != nil {
						t.Fatal(err)
					}
					if round%2 == 1 { // half of its digits are nought
						for j := range digits / 2 {
							for bit := range digitBits {
								v.SetBit(v, 2*j*digitBits+bit, 0)
							}
						}
					}
				}
				set(x.of(i), v)
				swell(x.of(i))
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
		if k.multiply(&a, &a, &b); a != out {
			t.Fatal("in place it is another product")
		}
	}
}

func TestChoose(t *testing.T) { each(t, testChoose) }

func testChoose(t *testing.T, e engine) {
	var table [1 << windowBits]pair
	for i := range table {
		for j := range table[i] {
			table[i][j] = uint64(i*1000 + j)
		}
	}
	for i := range table {
		other := (i*7 + 3) % len(table)
		var got pair
		e.choose(&got, &table, uint64(i), uint64(other))
		for j := range got {
			want := i
			if j >= lanes {
				want = other
			}
			if j%lanes < digits && got[j] != uint64(want*1000+j) {
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

// TestNewPassesOver an engine whose results are wrong: this one has the digits of the other in the wrong order.
func TestNewPassesOver(t *testing.T) { each(t, testNewPassesOver) }

func testNewPassesOver(t *testing.T, e engine) {
	private, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		t.Fatal(err)
	}
	all := engines
	defer func() { engines = all }()
	engines = []engine{0, e}
	if k := New(private); k == nil || k.engine != e {
		t.Error("New did not pass over it")
	}
	if engines = []engine{0}; New(private) != nil {
		t.Error("New took it")
	}
}

// TestFaultsDoNotLeave: a result that is wrong for one prime would give the other one away.
func TestFaultsDoNotLeave(t *testing.T) { each(t, testFaultsDoNotLeave) }

func testFaultsDoNotLeave(t *testing.T, e engine) {
	_, k := generate(t, e)
	k.exponents[0][windows-1] ^= 1
	c := make([]byte, keyBits/8)
	c[200] = 7
	if out, err := k.Private(c); !errors.Is(err, ErrFaulty) || out != nil {
		t.Errorf("%x, %v", out, err)
	}
	if k.Faults() != 1 {
		t.Errorf("%d faults are counted, want 1", k.Faults())
	}
}

func TestPrintsNothing(t *testing.T) { each(t, testPrintsNothing) }

func testPrintsNothing(t *testing.T, e engine) {
	_, k := generate(t, e)
	var out strings.Builder
	fmt.Fprintf(&out, "%v|%+v|%#v|%x", k, k, k, k)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "key", k)
	if strings.Count(out.String(), "[redacted]") != 5 || out.Len() > 200 {
		t.Error(out.String())
	}
}

func FuzzPrivate(f *testing.F) {
	if len(engines) == 0 {
		f.Skip("this processor has none of the instructions")
	}
	private, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{1})
	f.Add(bytes.Repeat([]byte{0xff}, keyBits/8))
	f.Add(private.Primes[0].Bytes())
	f.Fuzz(func(t *testing.T, c []byte) {
		for _, e := range engines {
			k := newKey(private, e)
			if len(c) <= keyBits/8 {
				compare(t, private, k, new(big.Int).SetBytes(c))
			} else if _, err := k.Private(c); !errors.Is(err, ErrRange) {
				t.Fatal(err)
			}
		}
	})
}

func BenchmarkPrivate(b *testing.B) {
	for _, e := range engines {
		_, k := generate(b, e)
		c := make([]byte, keyBits/8)
		c[10] = 3
		b.Run(e.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := k.Private(c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkMultiply(b *testing.B) {
	for _, e := range engines {
		_, k := generate(b, e)
		x := k.squares
		b.Run(e.String(), func(b *testing.B) {
			for b.Loop() {
				k.multiply(&x, &x, &x)
			}
		})
	}
}

func BenchmarkChoose(b *testing.B) {
	for _, e := range engines {
		var table [1 << windowBits]pair
		var x pair
		b.Run(e.String(), func(b *testing.B) {
			for b.Loop() {
				e.choose(&x, &table, 3, 9)
			}
		})
	}
}

// TestRoundingIsGosAfterwards: an engine may round towards zero, which nobody else on the thread does.
func TestRoundingIsGosAfterwards(t *testing.T) { each(t, testRoundingIsGosAfterwards) }

func testRoundingIsGosAfterwards(t *testing.T, e engine) {
	_, k := generate(t, e)
	one := float64(min(len(t.Name()), 1)) // what the compiler knows it adds itself
	x := k.squares
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	k.multiply(&x, &x, &x)
	if sum := one + one*0x1.8p-53; sum != 1+0x1p-52 {
		t.Errorf("1 + 1.5·2^-53 = 1 + %g", sum-1)
	}
}
