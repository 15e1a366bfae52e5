// Load and yardstick for the parts echo and fanout, on libzmq: the peers of the product.
//
//   load router PORT                     ROUTER that echoes
//   load pub PORT                        PUB; reads "COUNT SIZE" lines, publishes so many, says "sent"
//   load req PORT CLIENTS SECONDS SIZE   REQ sockets in lockstep; prints requests and latency
//   load sub PORT CLIENTS                SUB sockets; reads "COUNT" lines, says "ok" when every
//                                        socket has received so many; 0 throws away what is there
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void die(const char *what) {
	fprintf(stderr, "%s: %s\n", what, zmq_strerror(zmq_errno()));
	exit(1);
}

static void *context(int threads) {
	void *ctx = zmq_ctx_new();
	zmq_ctx_set(ctx, ZMQ_MAX_SOCKETS, 20000);
	zmq_ctx_set(ctx, ZMQ_IO_THREADS, threads);
	return ctx;
}

static void *open_socket(void *ctx, int type, const char *port, int serve) {
	char ep[64];
	snprintf(ep, sizeof ep, "tcp://127.0.0.1:%s", port);
	void *s = zmq_socket(ctx, type);
	if (!s) die("socket");
	int backlog = 8192, no = 0;
	zmq_setsockopt(s, ZMQ_BACKLOG, &backlog, sizeof backlog);
	zmq_setsockopt(s, ZMQ_LINGER, &no, sizeof no);
	if (type == ZMQ_SUB) zmq_setsockopt(s, ZMQ_SUBSCRIBE, "", 0);
	if ((serve ? zmq_bind(s, ep) : zmq_connect(s, ep)) != 0) die(ep);
	return s;
}

static void router(const char *port) {
	void *s = open_socket(context(1), ZMQ_ROUTER, port, 1);
	puts("ready");
	fflush(stdout);
	for (;;) {
		zmq_msg_t m;
		int more;
		do {
			zmq_msg_init(&m);
			if (zmq_msg_recv(&m, s, 0) < 0) die("recv");
			more = zmq_msg_more(&m);
			if (zmq_msg_send(&m, s, more ? ZMQ_SNDMORE : 0) < 0) zmq_msg_close(&m);
		} while (more);
	}
}

static void pub(const char *port) {
	void *s = open_socket(context(1), ZMQ_PUB, port, 1);
	puts("ready");
	fflush(stdout);
	long count, size;
	while (scanf("%ld %ld", &count, &size) == 2) {
		char *body = calloc(1, size);
		for (long i = 0; i < count; i++)
			if (zmq_send(s, body, size, 0) < 0) die("send");
		free(body);
		puts("sent");
		fflush(stdout);
	}
	exit(0);
}

struct share {
	void **sockets;
	long n, count, size;
	double until;
	long done;
	float *lat;
	long room;
};

static void *ask(void *arg) {
	struct share *w = arg;
	char *body = calloc(1, w->size), *in = malloc(w->size + 1);
	double *sent = calloc(w->n, sizeof *sent);
	while (now() < w->until) {
		for (long i = 0; i < w->n; i++) {
			sent[i] = now();
			if (zmq_send(w->sockets[i], body, w->size, 0) < 0) die("send");
		}
		for (long i = 0; i < w->n; i++) {
			if (zmq_recv(w->sockets[i], in, w->size + 1, 0) != w->size) die("recv");
			if (w->done < w->room) w->lat[w->done] = now() - sent[i];
			w->done++;
		}
	}
	return NULL;
}

static int order(const void *a, const void *b) {
	float x = *(const float *)a, y = *(const float *)b;
	return x < y ? -1 : x > y;
}

static void req(const char *port, long clients, double seconds, long size) {
	enum { threads = 2 };
	void *ctx = context(1);
	void **all = calloc(clients, sizeof *all);
	for (long i = 0; i < clients; i++) all[i] = open_socket(ctx, ZMQ_REQ, port, 0);
	struct share w[threads];
	pthread_t t[threads];
	for (int warm = 1; warm >= 0; warm--) { // the first round connects
		if (!warm) {
			puts("ready");
			fflush(stdout);
			getchar();
		}
		double start = now();
		for (int i = 0; i < threads; i++) {
			long from = clients * i / threads, to = clients * (i + 1) / threads;
			w[i] = (struct share){.sockets = all + from, .n = to - from, .size = size, .room = 4 << 20,
				.until = start + (warm ? 0.2 : seconds)};
			w[i].lat = malloc(w[i].room * sizeof(float));
			pthread_create(&t[i], NULL, ask, &w[i]);
		}
		long done = 0, kept = 0;
		float *lat = malloc(threads * (4 << 20) * sizeof *lat);
		for (int i = 0; i < threads; i++) {
			pthread_join(t[i], NULL);
			done += w[i].done;
			long k = w[i].done < w[i].room ? w[i].done : w[i].room;
			memcpy(lat + kept, w[i].lat, k * sizeof *lat);
			kept += k;
		}
		double took = now() - start;
		if (!warm) {
			qsort(lat, kept, sizeof *lat, order);
			printf("%ld %f %f %f\n", done, took, lat[kept / 2], lat[kept * 99 / 100]);
			fflush(stdout);
		}
	}
	getchar(); // the driver looks at the server before anything closes
	_exit(0);
}

static void *take(void *arg) {
	struct share *w = arg;
	zmq_msg_t m;
	zmq_msg_init(&m);
	for (long i = 0; i < w->n; i++) {
		for (long k = 0; k < w->count; k++)
			if (zmq_msg_recv(&m, w->sockets[i], 0) < 0) die("recv");
		while (w->count == 0 && zmq_msg_recv(&m, w->sockets[i], ZMQ_DONTWAIT) >= 0)
			;
	}
	zmq_msg_close(&m);
	return NULL;
}

static void sub(const char *port, long clients) {
	enum { threads = 2 };
	void *ctx = context(2);
	void **all = calloc(clients, sizeof *all);
	for (long i = 0; i < clients; i++) all[i] = open_socket(ctx, ZMQ_SUB, port, 0);
	puts("ready");
	fflush(stdout);
	long count;
	while (scanf("%ld", &count) == 1) {
		struct share w[threads];
		pthread_t t[threads];
		for (int i = 0; i < threads; i++) {
			long from = clients * i / threads, to = clients * (i + 1) / threads;
			w[i] = (struct share){.sockets = all + from, .n = to - from, .count = count};
			pthread_create(&t[i], NULL, take, &w[i]);
		}
		for (int i = 0; i < threads; i++) pthread_join(t[i], NULL);
		puts("ok");
		fflush(stdout);
	}
	_exit(0);
}

int main(int argc, char **argv) {
	if (argc >= 3 && !strcmp(argv[1], "router")) router(argv[2]);
	if (argc >= 3 && !strcmp(argv[1], "pub")) pub(argv[2]);
	if (argc >= 6 && !strcmp(argv[1], "req")) req(argv[2], atol(argv[3]), atof(argv[4]), atol(argv[5]));
	if (argc >= 4 && !strcmp(argv[1], "sub")) sub(argv[2], atol(argv[3]));
	fprintf(stderr, "usage: load router|pub|req|sub PORT ...\n");
	return 2;
}
