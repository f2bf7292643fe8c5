/* One pass of a dense decoder-only transformer with int8 matrices, float32 activations and bfloat16 keys and values.
 *
 * The formulas are those of models/transformer.py; this file does them in one call, on all threads, without leaving
 * the processor's cache in between. Knows no text; choosing tokens is the caller's.
 */
#include <stdlib.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(_OPENMP)
#include <omp.h>
#endif

#include "attention.h"

enum { MOST_DIM = 512 }; /* values of a head */

typedef struct {
    Matrix qkv, o, gate_up, down;
    const float *q_norm, *k_norm; /* [head_dim] or NULL */
} Layer;

typedef struct {
    int32_t layers, width, heads, kv_heads, head_dim, mlp_width;
    float eps;
    const Layer *layer;
    const int8_t *embedding;      /* [vocab][width] */
    const float *embedding_scale; /* [vocab] */
} Model;

typedef struct {
    int32_t tokens, context, capacity, threads, masked;
    const int64_t *ids, *positions; /* [tokens] */
    const uint8_t *mask;      /* [tokens][masked]: the last keys, all of the pass among them; NULL where all see all */
    const float *cosine, *sine; /* [positions][head_dim / 2] */
    uint16_t *cache; /* [layers][kv_heads][capacity / 32][64 * padded head_dim] bfloat16: see attention.h */
    const int32_t *tap, *push; /* [layers]: the row of tapped, of pushes, for behind each layer, or -1; NULL for none */
    float *tapped;            /* [rows][tokens][width] out: states behind layers */
    const float *pushes;      /* [rows][width]: added to all states behind a layer */
    float *x;                 /* [tokens][width] out: states behind the last layer */
    char *scratch;            /* as many bytes as remask_scratch says */
} Step;

typedef struct {
    int8_t *parts;
    float *step, *qkv, *mixed, *middle, *outs;
    uint16_t *q;
    Space *spaces;
} Scratch;

static char *take(char **from, long bytes) {
    char *at = *from;
    *from += (bytes + 63) / 64 * 64;
    return at;
}

static long lay_out(const Model *m, int tokens, int threads, char *base, Scratch *s) {
    int most = m->width > m->mlp_width ? m->width : m->mlp_width, queries = m->heads * m->head_dim;
    int wide_dim = padded(m->head_dim, 32);
    int rows = padded(tokens * (m->heads / m->kv_heads), 16);
    char *at = base;
    if (queries > most) most = queries;
    s->parts = (int8_t *)take(&at, (long)padded(2 * tokens, BLOCK) * padded(most, DEPTH));
    s->step = (float *)take(&at, 4L * tokens);
    s->qkv = (float *)take(&at, 4L * tokens * (queries + 2 * m->kv_heads * m->head_dim));
    s->mixed = (float *)take(&at, 4L * tokens * queries);
    s->middle = (float *)take(&at, 4L * tokens * m->mlp_width);
    s->outs = (float *)take(&at, 4L * threads * TOGETHER * 16 * wide_dim);
    s->spaces = (Space *)take(&at, threads * (long)sizeof(Space));
    s->q = (uint16_t *)take(&at, 2L * m->kv_heads * rows * wide_dim);
    return at - base;
}

long remask_scratch(const Model *m, int tokens, int threads) {
    Scratch s;
    return lay_out(m, tokens, threads, (char *)0, &s) + 64;
}

static int thread(void) {
#if defined(_OPENMP)
    return omp_get_thread_num();
#else
    return 0;
#endif
}

static void embed(const Model *m, const Step *p) {
#pragma omp for
    for (int t = 0; t < p->tokens; t++) {
        const int8_t *row = m->embedding + p->ids[t] * m->width;
        for (int i = 0; i < m->width; i++) p->x[(long)t * m->width + i] = row[i] * m->embedding_scale[p->ids[t]];
    }
}

/* All rows to their parts: x [tokens][count]. */
static void split(const float *x, const Matrix *m, float eps, int tokens, Scratch *s) {
    int width = padded(m->inputs, DEPTH);
#pragma omp for
    for (int t = 0; t < tokens; t++)
        split_row(x + (long)t * m->inputs, m->norm, eps, m->inputs, width, s->parts + 2L * t * width, s->step + t);
}

static void multiply(const Matrix *m, int tokens, float *out, int add, Scratch *s) {
#pragma omp for
    for (int at = 0; at < m->outputs; at += BLOCK)
        columns(m, at, s->parts, s->step, tokens, out + at, m->outputs, add);
}

/* silu(gate) * up, 32 columns of both at a time. */
static void gated(const Matrix *m, int tokens, int mlp_width, float *out, Scratch *s) {
#pragma omp for
    for (int at = 0; at < mlp_width; at += BLOCK) {
        float gate[BLOCK * BLOCK], up[BLOCK * BLOCK];
        int width = padded(m->inputs, DEPTH), many = mlp_width - at < BLOCK ? mlp_width - at : BLOCK;
        for (int t = 0; t < tokens; t += BLOCK) {
            int rows = tokens - t < BLOCK ? tokens - t : BLOCK;
            columns(m, at, s->parts + 2L * t * width, s->step + t, rows, gate, BLOCK, 0);
            columns(m, mlp_width + at, s->parts + 2L * t * width, s->step + t, rows, up, BLOCK, 0);
            for (int r = 0; r < rows; r++)
                for (int n = 0; n < many; n++) {
                    float g = gate[r * BLOCK + n], e = power(-fabsf(g) * LOG2_E); /* e^-|g| <= 1 */
                    float sigmoid = (g > 0 ? 1.0f : e) / (1.0f + e);
                    out[(long)(t + r) * mlp_width + at + n] = g * sigmoid * up[r * BLOCK + n];
                }
        }
    }
}

static void normalise(float *head, const float *weight, float eps, int dim) {
    float square = 0.0f;
    for (int d = 0; d < dim; d++) square += head[d] * head[d];
    float factor = 1.0f / sqrtf(square / dim + eps);
    for (int d = 0; d < dim; d++) head[d] *= factor * weight[d];
}

/* One head of one token, turned to its position and rounded. */
static void turn(float *head, const float *norm, float eps, const float *c, const float *s, int dim, uint16_t *to) {
    int half = dim / 2;
    if (norm) normalise(head, norm, eps, dim);
    for (int d = 0; d < half; d++) {
        float a = head[d], b = head[half + d];
        to[d] = narrow(a * c[d] - b * s[d]);
        to[half + d] = narrow(b * c[d] + a * s[d]);
    }
}

/* Queries to s->q [kv_heads][tokens * group rows][wide_dim], keys and values to the cache of one layer. */
static void place(const Model *m, const Layer *l, const Step *p, uint16_t *cache, Scratch *s) {
    int dim = m->head_dim, half = dim / 2, wide_dim = padded(dim, 32), group = m->heads / m->kv_heads;
    int rows = padded(p->tokens * group, 16), all = (m->heads + 2 * m->kv_heads) * dim;
#pragma omp for
    for (int i = 0; i < padded(p->tokens, 2) / 2 + 1; i++) { /* two neighbours share a pair of values: one thread */
        int first = 2 * i - p->context % 2;
        for (int t = first < 0 ? 0 : first; t < first + 2 && t < p->tokens; t++) {
            float *at = s->qkv + (long)t * all;
            const float *c = p->cosine + p->positions[t] * half, *sn = p->sine + p->positions[t] * half;
            uint16_t key[MOST_DIM], value[MOST_DIM];
            for (int h = 0; h < m->heads; h++) {
                uint16_t *to = s->q + ((long)(h / group) * rows + t * group + h % group) * wide_dim;
                turn(at + h * dim, l->q_norm, m->eps, c, sn, dim, to);
                memset(to + dim, 0, 2 * (wide_dim - dim));
            }
            for (int h = 0; h < m->kv_heads; h++) {
                const float *v = at + (m->heads + m->kv_heads + h) * dim;
                int slot = p->context + t;
                turn(at + (m->heads + h) * dim, l->k_norm, m->eps, c, sn, dim, key);
                for (int d = 0; d < dim; d++) value[d] = narrow(v[d]);
                store(key, value, dim, slot % 32, cache + ((long)h * p->capacity + slot / 32 * 32) * 2 * wide_dim);
            }
        }
    }
}

/* Tiles of a KV head that a thread takes at once: many share what is read, few leave work for all threads. */
static int together(int tiles, int kv_heads, int threads) {
    int share = kv_heads * tiles / (2 * threads);
    if (threads == 1 || share > TOGETHER) share = TOGETHER;
    return share < 1 ? 1 : share < tiles ? share : tiles;
}

static void attend(const Model *m, const Step *p, const uint16_t *cache, Scratch *s) {
    int dim = m->head_dim, wide_dim = padded(dim, 32), group = m->heads / m->kv_heads, many = p->tokens * group;
    int tiles = padded(many, 16) / 16, each = together(tiles, m->kv_heads, p->threads), parts = (tiles + each - 1) / each;
    View view = {p->tokens, p->context, p->masked, group, dim, p->mask};
#pragma omp for
    for (int i = 0; i < m->kv_heads * parts; i++) {
        int h = i / parts, first = i % parts * each, now = tiles - first < each ? tiles - first : each;
        float *out = s->outs + (long)thread() * TOGETHER * 16 * wide_dim;
        attend_tiles(&view, s->q + ((long)h * tiles + first) * 16 * wide_dim, first * 16, now, many,
                     cache + (long)h * p->capacity * 2 * wide_dim, s->spaces + thread(), out);
        for (int r = first * 16; r < (first + now) * 16 && r < many; r++)
            memcpy(s->mixed + ((long)(r / group) * m->heads + h * group + r % group) * dim,
                   out + (r - first * 16) * wide_dim, dim * sizeof *out);
    }
}

/* What is added and kept behind a layer. */
static void behind(const Model *m, const Step *p, int layer) {
    int push = p->push ? p->push[layer] : -1, tap = p->tap ? p->tap[layer] : -1;
    if (push < 0 && tap < 0) return;
#pragma omp for
    for (int t = 0; t < p->tokens; t++) {
        float *x = p->x + (long)t * m->width;
        for (int i = 0; push >= 0 && i < m->width; i++) x[i] += p->pushes[(long)push * m->width + i];
        if (tap >= 0) memcpy(p->tapped + ((long)tap * p->tokens + t) * m->width, x, m->width * sizeof *x);
    }
}

void remask_pass(const Model *m, const Step *p) {
    Scratch s;
    char *base = p->scratch + (64 - (uintptr_t)p->scratch % 64) % 64;
    lay_out(m, p->tokens, p->threads, base, &s);
    long one = (long)m->kv_heads * p->capacity * 2 * padded(m->head_dim, 32);
#pragma omp parallel num_threads(p->threads)
    {
        set_tiles();
        embed(m, p);
        for (int i = 0; i < m->layers; i++) {
            const Layer *l = m->layer + i;
            split(p->x, &l->qkv, m->eps, p->tokens, &s);
            multiply(&l->qkv, p->tokens, s.qkv, 0, &s);
            place(m, l, p, p->cache + i * one, &s);
            attend(m, p, p->cache + i * one, &s);
            split(s.mixed, &l->o, m->eps, p->tokens, &s);
            multiply(&l->o, p->tokens, p->x, 1, &s);
            split(p->x, &l->gate_up, m->eps, p->tokens, &s);
            gated(&l->gate_up, p->tokens, m->mlp_width, s.middle, &s);
            split(s.middle, &l->down, m->eps, p->tokens, &s);
            multiply(&l->down, p->tokens, p->x, 1, &s);
            behind(m, p, i);
        }
        release_tiles();
    }
}

static long lay_out_product(int rows, int inputs, char *base, Scratch *s) {
    char *at = base;
    s->parts = (int8_t *)take(&at, (long)padded(2 * rows, BLOCK) * padded(inputs, DEPTH));
    s->step = (float *)take(&at, 4L * rows);
    return at - base;
}

long remask_product_scratch(int rows, int inputs) {
    Scratch s;
    return lay_out_product(rows, inputs, (char *)0, &s) + 64;
}

/* x [rows][inputs] to out [rows][outputs] by one matrix, its norm before it. */
void remask_product(const Matrix *m, float eps, int rows, const float *x, float *out, char *scratch, int threads) {
    Scratch s;
    lay_out_product(rows, m->inputs, scratch + (64 - (uintptr_t)scratch % 64) % 64, &s);
    (void)threads;
#pragma omp parallel num_threads(threads)
    {
        set_tiles();
        split(x, m, eps, rows, &s);
        multiply(m, rows, out, 0, &s);
        release_tiles();
    }
}

#include "best.h"
#include "draft.h"

/* Whether the matrix instructions may be used in this process: 0, or the system's refusal. */
long remask_prepare(void) {
#if defined(__AMX_INT8__) && defined(__linux__)
    return syscall(SYS_arch_prctl, 0x1023, 18); /* ARCH_REQ_XCOMP_PERM for the tile data */
#else
    return 0;
#endif
}

/* What the products were compiled to. */
const char *remask_kind(void) {
#if defined(__AMX_INT8__)
    return "amx";
#elif defined(__AVX512VNNI__) || defined(__AVXVNNI__)
    return "vnni";
#elif defined(__AVX2__)
    return "avx2";
#elif defined(__ARM_FEATURE_DOTPROD)
    return "dotprod";
#else
    return "plain";
#endif
}
