// Package formula holds what is quickly said of the Salt formula (packaging/formula): states and orchestrations compile
// (states.py), templates make what saltclusterctl writes, and the defaults are those of pillar.example.
// integration/packages applies it to hosts with real salt-masters.
package formula
