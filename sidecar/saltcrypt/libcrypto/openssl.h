// What of OpenSSL 3 is used. Declared here, so that a build needs no headers of it: the functions are found at run time, and their
// signatures are part of the ABI that libcrypto.so.3 stands for (man 3 of each).

#include <stddef.h>

#define LC_SHA1 1
#define LC_SHA224 2

// lc_open loads the library once; NULL, or why it is not used.
const char *lc_open(void);
const char *lc_version(void);

// lc_key takes a PKCS#1 private key; NULL when it is refused.
void *lc_key(const unsigned char *der, size_t len);
void lc_free(void *key);
size_t lc_size(void *key); // of its modulus, in bytes

// Both return the length of what they wrote, or -1. They need room for as many bytes as the modulus has.
long lc_sign(void *key, int hash, const unsigned char *digest, size_t len, unsigned char *sig, size_t room);
long lc_decrypt(void *key, int hash, const unsigned char *in, size_t len, unsigned char *out, size_t room);
