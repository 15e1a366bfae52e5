//go:build libcrypto && cgo && linux

#include "openssl.h"

#include <dlfcn.h>
#include <stdint.h>

typedef struct evp_pkey_st PKEY;
typedef struct evp_pkey_ctx_st CTX;
typedef struct evp_md_st MD;

// From openssl/crypto.h, evp.h, rsa.h; the same in all of OpenSSL 3.
#define INIT_NO_LOAD_CONFIG 0x80
#define INIT_NO_ATEXIT 0x80000
#define VERSION_TEXT 0
#define PKEY_RSA 6
#define PADDING_PKCS1 1
#define PADDING_OAEP 4

static unsigned long (*version_num)(void);
static const char *(*version_text)(int);
static int (*init_crypto)(uint64_t, const void *);
static void (*err_clear)(void);
static PKEY *(*d2i)(int, PKEY **, const unsigned char **, long);
static void (*pkey_free)(PKEY *);
static int (*pkey_size)(const PKEY *);
static CTX *(*ctx_new)(PKEY *, void *);
static void (*ctx_free)(CTX *);
static int (*set_padding)(CTX *, int);
static int (*sign_init)(CTX *);
static int (*set_sign_md)(CTX *, const MD *);
static int (*do_sign)(CTX *, unsigned char *, size_t *, const unsigned char *, size_t);
static int (*decrypt_init)(CTX *);
static int (*set_oaep_md)(CTX *, const MD *);
static int (*set_mgf1_md)(CTX *, const MD *);
static int (*do_decrypt)(CTX *, unsigned char *, size_t *, const unsigned char *, size_t);
static const MD *(*sha1)(void);
static const MD *(*sha224)(void);

static const struct {
	const char *name;
	void *where;
} symbols[] = {
	{"OpenSSL_version_num", &version_num}, {"OpenSSL_version", &version_text}, {"OPENSSL_init_crypto", &init_crypto},
	{"ERR_clear_error", &err_clear}, {"d2i_PrivateKey", &d2i}, {"EVP_PKEY_free", &pkey_free}, {"EVP_PKEY_get_size", &pkey_size},
	{"EVP_PKEY_CTX_new", &ctx_new}, {"EVP_PKEY_CTX_free", &ctx_free}, {"EVP_PKEY_CTX_set_rsa_padding", &set_padding},
	{"EVP_PKEY_sign_init", &sign_init}, {"EVP_PKEY_CTX_set_signature_md", &set_sign_md}, {"EVP_PKEY_sign", &do_sign},
	{"EVP_PKEY_decrypt_init", &decrypt_init}, {"EVP_PKEY_CTX_set_rsa_oaep_md", &set_oaep_md},
	{"EVP_PKEY_CTX_set_rsa_mgf1_md", &set_mgf1_md}, {"EVP_PKEY_decrypt", &do_decrypt}, {"EVP_sha1", &sha1}, {"EVP_sha224", &sha224},
};

const char *lc_open(void) {
	void *lib = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
	if (lib == NULL)
		return "no libcrypto.so.3 that can be loaded";
	for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
		void *found = dlsym(lib, symbols[i].name);
		if (found == NULL)
			return symbols[i].name;
		*(void **)symbols[i].where = found;
	}
	// 3.0.4 writes beyond its memory in just these operations, on processors with AVX-512 IFMA (CVE-2022-2274).
	unsigned long v = version_num(); // 0xMNN00PP0
	if (v >> 28 != 3 || v >> 4 == 0x3000004)
		return "a version that is not to be used";
	if (init_crypto(INIT_NO_LOAD_CONFIG | INIT_NO_ATEXIT, NULL) != 1)
		return "it does not start";
	return NULL;
}

const char *lc_version(void) { return version_text(VERSION_TEXT); }

void *lc_key(const unsigned char *der, size_t len) {
	PKEY *key = d2i(PKEY_RSA, NULL, &der, (long)len);
	err_clear();
	return key;
}

size_t lc_size(void *key) { return (size_t)pkey_size(key); }

void lc_free(void *key) { pkey_free(key); }

static const MD *md(int hash) { return hash == LC_SHA1 ? sha1() : sha224(); }

long lc_sign(void *key, int hash, const unsigned char *digest, size_t len, unsigned char *sig, size_t room) {
	CTX *ctx = ctx_new(key, NULL);
	int ok = ctx != NULL && lc_size(key) <= room && sign_init(ctx) == 1 && set_padding(ctx, PADDING_PKCS1) == 1 &&
		set_sign_md(ctx, md(hash)) == 1 && do_sign(ctx, sig, &room, digest, len) == 1;
	ctx_free(ctx);
	err_clear();
	return ok ? (long)room : -1;
}

long lc_decrypt(void *key, int hash, const unsigned char *in, size_t len, unsigned char *out, size_t room) {
	CTX *ctx = ctx_new(key, NULL);
	int ok = ctx != NULL && lc_size(key) <= room && decrypt_init(ctx) == 1 && set_padding(ctx, PADDING_OAEP) == 1 &&
		set_oaep_md(ctx, md(hash)) == 1 && set_mgf1_md(ctx, md(hash)) == 1 && do_decrypt(ctx, out, &room, in, len) == 1;
	ctx_free(ctx);
	err_clear();
	return ok ? (long)room : -1;
}
