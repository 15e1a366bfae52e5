package fastrsa

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"math/big"
	"runtime"
	"slices"
	"testing"
)

// atOnce gives a key whose operations are reckoned four at once.
func atOnce(tb testing.TB) (*rsa.PrivateKey, *Key) {
	tb.Helper()
	if !slices.Contains(engines, ifma) {
		tb.Skip("this processor has not the instructions")
	}
	private, k := generate(tb, shapes[0], 0)
	if k.four == nil {
		tb.Fatal("the key cannot do four at once")
	}
	return private, k
}

func TestPrivateAll(t *testing.T) {
	each(t, func(t *testing.T, s shape) {
		private, k := generate(t, s, 0)
		random := func() []byte {
			c, err := rand.Int(rand.Reader, private.N)
			if err != nil {
				t.Fatal(err)
			}
			return c.FillBytes(make([]byte, private.Size()))
		}
		one := big.NewInt(1)
		p, q := private.Primes[0], private.Primes[1]
		odd := [][]byte{make([]byte, private.Size()), {1}, nil, private.N.Bytes()} // nought is a number, the others are none
		for _, v := range []*big.Int{one, p, q, new(big.Int).Sub(private.N, one), new(big.Int).Sub(private.N, p), new(big.Int).Lsh(one, uint(2*s.bits-1))} {
			odd = append(odd, v.FillBytes(make([]byte, private.Size())))
		}
		for n := range 14 / (s.bits / 1024) {
			for round := range 3 {
				var numbers [][]byte
				for i := range n {
					c := random()
					if round > 0 && (i+round)%(1+2*round) == 0 {
						c = odd[(i*5+n)%len(odd)]
					}
					numbers = append(numbers, c)
				}
				powers, errs := k.PrivateAll(numbers)
				if len(powers) != n || len(errs) != n {
					t.Fatalf("%d results and %d errors of %d", len(powers), len(errs), n)
				}
				for i, c := range numbers {
					want, err := k.Private(c)
					if !bytes.Equal(powers[i], want) || !errors.Is(errs[i], err) {
						t.Fatalf("number %d of %d: %x, %v; alone %x, %v", i, n, powers[i], errs[i], want, err)
					}
				}
			}
		}
		if k.Faults() != 0 {
			t.Errorf("%d faults", k.Faults())
		}
	})
}

// TestEight has the largest factors that may come and such whose digits are extremes, each in every lane, and looks at the size of what comes out.
func TestEight(t *testing.T) {
	atOnce(t)
	one, R := big.NewInt(1), new(big.Int).Lsh(big.NewInt(1), 20*digitBits)
	high := new(big.Int).Lsh(one, 1023)
	all := new(big.Int).Sub(new(big.Int).Lsh(one, 1024), one)
	ones := new(big.Int)
	for range 19 {
		ones.Lsh(ones, digitBits).Add(ones, one)
	}
	s := shapes[0]
	for round := range 300 {
		var moduli, factors, others [eight]*big.Int
		var a, b, out octet
		var m [21 * eight]uint64
		var primes octet
		digits := make([]uint64, s.lanes)
		split := func(o *octet, lane int, v *big.Int) {
			v = new(big.Int).Set(v)
			for i := range 20 {
				digits[i] = new(big.Int).And(v, big.NewInt(mask)).Uint64()
				v.Rsh(v, digitBits)
			}
			o.set(lane, digits)
		}
		for lane := range eight {
			random := func(below *big.Int) *big.Int {
				v, err := rand.Int(rand.Reader, below)
				if err != nil {
					t.Fatal(err)
				}
				return v
			}
			modulus := []*big.Int{all, new(big.Int).Or(high, one), new(big.Int).Or(high, big.NewInt(mask)), new(big.Int).Or(new(big.Int).Or(high, random(high)), one)}[(round+lane)%4]
			moduli[lane] = modulus
			four := new(big.Int).Lsh(modulus, 2)
			for i, v := range []**big.Int{&factors[lane], &others[lane]} {
				switch (round/4 + lane*(i+1)) % 6 {
				case 0:
					*v = new(big.Int).Sub(four, one)
				case 1:
					*v = new(big.Int)
				case 2:
					*v = new(big.Int).Mul(ones, big.NewInt(mask))
				case 3:
					*v = modulus
				default:
					*v = random(four)
				}
			}
			split(&a, lane, factors[lane])
			split(&b, lane, others[lane])
			split(&primes, lane, modulus)
			inverse := new(big.Int).ModInverse(modulus, new(big.Int).Lsh(one, digitBits))
			m[len(primes)+lane] = -inverse.Uint64() & mask
		}
		copy(m[:], primes[:])
		check := func(what string, out *octet, x, y [eight]*big.Int) (values [eight]*big.Int) {
			t.Helper()
			for lane, modulus := range moduli {
				v := new(big.Int)
				out.of(lane, digits)
				for i := 19; i >= 0; i-- {
					if digits[i] > mask {
						t.Fatalf("%s, round %d: %#x is no digit", what, round, digits[i])
					}
					v.Lsh(v, digitBits).Add(v, new(big.Int).SetUint64(digits[i]))
				}
				want := new(big.Int).Mul(x[lane], y[lane])
				quotient := new(big.Int).ModInverse(modulus, R)
				quotient.Neg(quotient).Mul(quotient, want).Mod(quotient, R)
				want.Add(want, quotient.Mul(quotient, modulus)).Rsh(want, 20*digitBits)
				if v.Cmp(want) != 0 || v.Cmp(new(big.Int).Lsh(modulus, 1)) >= 0 {
					t.Fatalf("%s, round %d, lane %d: %x, want %x", what, round, lane, v, want)
				}
				values[lane] = v
			}
			return values
		}
		out.multiply(&a, &b, &m)
		check("product", &out, factors, others)
		inPlace := b
		if inPlace.multiply(&a, &inPlace, &m); inPlace != out {
			t.Fatal("in place it is another product")
		}
		var columns [2 * len(octet{})]uint64
		out = a
		out.square(&m, &columns, 1)
		once := check("square", &out, factors, factors)
		out.square(&m, &columns, 1)
		check("square of a square", &out, once, once)
		if a.square(&m, &columns, 2); a != out {
			t.Fatal("two squares at once are another number")
		}
	}
}

func TestChooseEight(t *testing.T) {
	atOnce(t)
	w := new(fourspace)
	for e := range w.table {
		for i := range w.table[e] {
			w.table[e][i] = uint64(e*1000 + i)
		}
	}
	before := w.table
	for round := range fourEntries + 1 {
		for lane := range w.which {
			w.which[lane] = uint64((round*(lane+1) + lane) % (fourEntries + 1)) // the last one is none
		}
		var got octet
		w.chosen(&got)
		for i, digit := range got {
			want := w.which[i%eight]*1000 + uint64(i)
			if w.which[i%eight] == fourEntries {
				want = 0
			}
			if digit != want {
				t.Fatalf("round %d: %d at %d, want %d", round, digit, i, want)
			}
		}
	}
	if w.table != before {
		t.Error("the table is another one")
	}
}

// TestFaultsOfFour: of four at once those that are wrong do not leave.
func TestFaultsOfFour(t *testing.T) {
	_, sound := atOnce(t)
	numbers := make([][]byte, together)
	for i := range numbers {
		numbers[i] = bytes.Repeat([]byte{byte(i + 1)}, 256)
	}
	for what, spoil := range map[string]func(*four) (wrong []int){
		"an exponent": func(f *four) []int { f.exponents[1][7] ^= 2; return []int{0, 1, 2, 3} },
		"a modulus":   func(f *four) []int { f.moduli[5*eight+3] ^= 1 << 30; return []int{1} },
		"R²":          func(f *four) []int { f.squares[4*eight+4] ^= 1; return []int{2} },
		"R²·2^1024":   func(f *four) []int { f.uppers[4*eight+7] ^= 1; return []int{3} },
	} {
		_, k := atOnce(t)
		wrong := spoil(k.four)
		powers, errs := k.PrivateAll(numbers)
		for i, c := range numbers {
			want, err := sound.Private(c)
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(wrong, i) {
				if powers[i] != nil || !errors.Is(errs[i], ErrFaulty) {
					t.Errorf("%s is another: number %d: %x, %v", what, i, powers[i], errs[i])
				}
			} else if errs[i] != nil || !bytes.Equal(powers[i], want) {
				t.Errorf("%s is another for one: number %d: %x, %v", what, i, powers[i], errs[i])
			}
		}
		if k.Faults() != uint64(len(wrong)) {
			t.Errorf("%s is another: %d faults are counted, want %d", what, k.Faults(), len(wrong))
		}
	}
}

// TestNoNumberTakesNobodysPlace: those beside one that is no number modulo the key are reckoned at once all the same.
func TestNoNumberTakesNobodysPlace(t *testing.T) {
	private, k := atOnce(t)
	k.four.exponents[0][5] ^= 1 // tells who was
	numbers := make([][]byte, 2*together)
	none := []int{1, 5, 6}
	for i := range numbers {
		numbers[i] = bytes.Repeat([]byte{byte(i + 1)}, private.Size())
		if slices.Contains(none, i) {
			numbers[i] = bytes.Repeat([]byte{0xff}, private.Size())
		}
	}
	powers, errs := k.PrivateAll(numbers)
	for i, want := range []error{ErrFaulty, ErrRange, ErrFaulty, ErrFaulty, ErrFaulty, ErrRange, ErrRange, nil} {
		if !errors.Is(errs[i], want) || (powers[i] == nil) != (want != nil) {
			t.Errorf("number %d: %v, want %v", i, errs[i], want)
		}
	}
}

// TestFourIsTried: a key whose four at once are wrong from the beginning has them one after the other.
func TestFourIsTried(t *testing.T) {
	private, k := atOnce(t)
	if whole := New(private); whole == nil || whole.Together() != together || whole.Faults() != 0 {
		t.Fatal("a good key does not do four at once")
	}
	k.four.squares[3] ^= 1
	if !k.works() || k.Together() != 1 || k.Faults() != 0 {
		t.Errorf("%d at once, %d faults", k.Together(), k.Faults())
	}
	c := bytes.Repeat([]byte{1}, private.Size())
	if _, errs := k.PrivateAll([][]byte{c, c, c, c, c}); errors.Join(errs...) != nil {
		t.Error(errs)
	}
	k.exponents[0][3] ^= 1
	if k.works() {
		t.Error("a wrong result is none")
	}
}

func TestFourspacesAreCleared(t *testing.T) {
	before := fourspaces.New
	defer func() { fourspaces.New = before }()
	numbers := [][]byte{bytes.Repeat([]byte{1}, 256), bytes.Repeat([]byte{2}, 256), bytes.Repeat([]byte{3}, 256), bytes.Repeat([]byte{4}, 256)}
	for what, spoil := range map[string]func(*four){
		"right":    func(*four) {},
		"faulty":   func(f *four) { f.exponents[0][3] ^= 1 },
		"panicked": func(f *four) { f.exponents[1] = nil },
	} {
		_, k := atOnce(t)
		spoil(k.four)
		var used []*fourspace
		fourspaces.New = func() any {
			used = append(used, new(fourspace))
			return used[len(used)-1]
		}
		for i := 0; len(used) == 0 && i < 1000; i++ { // others may lie there
			func() {
				defer func() {
					if r := recover(); (r != nil) != (what == "panicked") {
						t.Errorf("%s: %v", what, r)
					}
				}()
				k.PrivateAll(numbers)
			}()
			runtime.GC() // which takes what lies there, the second time
		}
		if len(used) == 0 {
			t.Fatal("no room was made")
		}
		for _, w := range used {
			if *w != (fourspace{}) {
				t.Errorf("%s: it was kept as it was", what)
			}
		}
	}
}

// FuzzPrivateAll looks at four operations at once from the other end, as FuzzPrivate does.
func FuzzPrivateAll(f *testing.F) {
	private, k := atOnce(f)
	f.Add(bytes.Repeat([]byte{0xff}, 1020))
	f.Add(private.Primes[0].Bytes())
	f.Fuzz(func(t *testing.T, raw []byte) {
		numbers := make([][]byte, together)
		for i := range numbers {
			c := new(big.Int).SetBytes(raw[len(raw)*i/together : len(raw)*(i+1)/together])
			numbers[i] = c.Mod(c, private.N).FillBytes(make([]byte, private.Size()))
		}
		powers, errs := k.PrivateAll(numbers)
		for i, c := range numbers {
			m := new(big.Int).SetBytes(powers[i])
			if errs[i] != nil || m.Cmp(private.N) >= 0 || m.Exp(m, big.NewInt(int64(private.E)), private.N).Cmp(new(big.Int).SetBytes(c)) != 0 {
				t.Fatalf("%x to the power of d is another number (%v)", c, errs[i])
			}
		}
	})
}

// BenchmarkPrivateAll is of one operation, of four at once.
func BenchmarkPrivateAll(b *testing.B) {
	private, k := atOnce(b)
	numbers := make([][]byte, together)
	for i := range numbers {
		numbers[i] = make([]byte, private.Size())
		numbers[i][10] = byte(i)
	}
	b.ReportAllocs()
	for i := 0; i < b.N; i += together {
		k.PrivateAll(numbers)
	}
}

func BenchmarkEight(b *testing.B) {
	_, k := atOnce(b)
	x := k.four.squares
	b.Run("product", func(b *testing.B) {
		for b.Loop() {
			x.multiply(&x, &x, &k.four.moduli)
		}
	})
	var columns [2 * len(octet{})]uint64
	b.Run("four squares", func(b *testing.B) {
		for b.Loop() {
			x.square(&k.four.moduli, &columns, fourWindowBits)
		}
	})
	w := new(fourspace)
	b.Run("choice", func(b *testing.B) {
		for b.Loop() {
			w.chosen(&x)
		}
	})
}
