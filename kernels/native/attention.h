/* Attention of all rows of a pass to one layer's keys and values, both bfloat16.
 *
 * out[r] = sum_j softmax_j(q[r] . k[j] / sqrt(d)) v[j], j over the context and, as the mask says, the pass's own tokens.
 * Keys and values are kept in blocks of 32 tokens as the multiplication wants them, so that a pass reads them once and
 * rearranges nothing. They are taken in chunks that stay in the processor's cache together with their scores, and the
 * softmax is kept up to date from chunk to chunk (online softmax: Milakov & Gimelshein 2018). Chunks start at fixed
 * places and what a row does not see adds exact zeros, so a row comes out alike whatever stands beside or behind it.
 * Row r of a KV head is token r / group and head r % group of that token.
 */
#ifndef REMASK_ATTENTION_H
#define REMASK_ATTENTION_H

#include "product.h"

enum { CHUNK = 256, LINE = CHUNK + 16, TOGETHER = 3 }; /* keys; floats a row of scores; tiles that share a chunk */

typedef struct {
    int tokens, context, masked, group, head_dim;
    const uint8_t *mask; /* [tokens][masked], of the last keys, or NULL */
} View;

typedef struct { /* what a thread works in; a row's LINE is no power of two, so that rows share no lines of the cache */
    float scores[16 * LINE], top[TOGETHER * 16], total[TOGETHER * 16];
    uint16_t weights[16 * CHUNK];
} Space;

static inline float wide(uint16_t bits) {
    uint32_t raw = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &raw, 4);
    return value;
}

static inline uint16_t narrow(float value) { /* round to nearest even */
    uint32_t raw;
    memcpy(&raw, &value, 4);
    return (uint16_t)((raw + 0x7fff + (raw >> 16 & 1)) >> 16);
}

static const float LOG2_E = 1.44269504f;

/* 2^x for x <= 0, to 3e-7 relative and exact at 0; below 2^-126, at minus infinity and for what is no number it is 0. */
static inline float power(float x) {
    float bounded = larger(x, -127.0f), n = rintf(bounded), f = bounded - n;
    float p = 1.0f + f * (0.693147004f + f * (0.240222424f + f * (5.55073358e-2f + f * (9.67151392e-3f + f * 1.32647308e-3f))));
    int32_t bits = ((int32_t)n + 127) << 23;
    float scale;
    memcpy(&scale, &bits, 4);
    return p * scale;
}

/* The largest of a row's scores in a chunk. */
static float highest(const float *scores, int keys) {
    float top = -INFINITY;
#pragma omp simd reduction(max : top)
    for (int j = 0; j < keys; j++) top = larger(top, scores[j]);
    return top;
}

/* Minus infinity for what a row does not see of the keys from `start` to `end`, and for the slots behind the last. */
static void hide(const View *v, int row, int start, int end, float *scores) {
    int keys = v->context + v->tokens, first = keys - v->masked;
    const uint8_t *mask = v->mask + (long)(row / v->group) * v->masked;
    for (int j = start > first ? start : first; v->mask && j < end && j < keys; j++)
        if (!mask[j - first]) scores[j - start] = -INFINITY;
    for (int j = start > keys ? start : keys; j < end; j++) scores[j - start] = -INFINITY;
}

/* Where pair p (two neighbours of the head's values) of key j lies in a block of 32 keys, in units of a pair. */
static inline long key_pair(int j, int p, int wide_dim) { return ((long)(j / 16) * (wide_dim / 2) + p) * 16 + j % 16; }

/* One token's key and value, [head_dim] each, into slot j of its block: keys [2][wide_dim / 2][16 keys][2], then values
 * [wide_dim / 16][16 pairs of keys][16][2]. Slots that were never written hold zeros, so nothing unknown is mixed in. */
static void store(const uint16_t *k, const uint16_t *v, int head_dim, int j, uint16_t *block) {
    int wide_dim = padded(head_dim, 32);
    uint16_t *values = block + 32 * wide_dim;
    for (int d = 0; d < head_dim; d++) block[key_pair(j, d / 2, wide_dim) * 2 + d % 2] = k[d];
    for (int d = 0; d < head_dim; d++) values[(d / 16 * 16 + j / 2) * 32L + d % 16 * 2 + j % 2] = v[d];
}

#if defined(__AMX_BF16__) && defined(__AVX512BF16__)

/* Scores of 16 query rows [16][wide_dim] with a chunk's keys: [16][LINE]. */
static void score(const uint16_t *q, const uint16_t *blocks, int wide_dim, int keys, int rows, float *scores) {
    (void)rows;
    for (int at = 0; at < keys; at += 32) {
        const uint16_t *block = blocks + (long)at * wide_dim * 2;
        _tile_zero(0);
        _tile_zero(1);
        for (int d = 0; d < wide_dim; d += 32) {
            _tile_loadd(4, q + d, wide_dim * 2);
            _tile_loadd(6, block + d * 16, 64);
            _tile_loadd(7, block + (wide_dim + d) * 16, 64);
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 4, 7);
        }
        _tile_stored(0, scores + at, LINE * 4);
        _tile_stored(1, scores + at + 16, LINE * 4);
    }
}

/* 2^x of sixteen, x <= 0, to 1e-4 relative: the weights are rounded to bfloat16, which is 20 times as coarse. */
static inline __m512 powers(__m512 x) {
    __m512 n = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT), f = _mm512_sub_ps(x, n);
    __m512 p = _mm512_fmadd_ps(f, _mm512_set1_ps(5.500809e-2f), _mm512_set1_ps(0.24220917f));
    p = _mm512_fmadd_ps(f, p, _mm512_set1_ps(0.69328282f));
    p = _mm512_fmadd_ps(f, p, _mm512_set1_ps(1.0f));
    __mmask16 some = _mm512_cmp_ps_mask(x, _mm512_set1_ps(-126.0f), _CMP_GE_OQ);
    return _mm512_maskz_scalef_ps(some, p, n);
}

/* A row's scores to its weights 2^((score - top) * root); returns their sum. */
static float weigh(float *scores, int keys, float top, float root, uint16_t *weights) {
    __m512 sum = _mm512_setzero_ps(), by = _mm512_set1_ps(root), less = _mm512_set1_ps(top * root);
    for (int j = 0; j < keys; j += 32) {
        __m512 a = powers(_mm512_fmsub_ps(_mm512_loadu_ps(scores + j), by, less));
        __m512 b = powers(_mm512_fmsub_ps(_mm512_loadu_ps(scores + j + 16), by, less));
        sum = _mm512_add_ps(sum, _mm512_add_ps(a, b));
        _mm512_storeu_si512(weights + j, (__m512i)_mm512_cvtne2ps_pbh(b, a));
    }
    return _mm512_reduce_add_ps(sum);
}

/* out [16][wide_dim] += weights [16][CHUNK] times a chunk's values. */
static void mix(const float *scores, const uint16_t *weights, const uint16_t *blocks, int wide_dim, int keys, int rows,
                float *out) {
    (void)scores;
    (void)rows;
    for (int d = 0; d < wide_dim; d += 32) {
        _tile_loadd(0, out + d, wide_dim * 4L);
        _tile_loadd(1, out + d + 16, wide_dim * 4L);
        for (int at = 0; at < keys; at += 32) {
            const uint16_t *values = blocks + (long)at * wide_dim * 2 + 32 * wide_dim + d * 32;
            _tile_loadd(4, weights + at, CHUNK * 2L);
            _tile_loadd(6, values, 64);
            _tile_loadd(7, values + 512, 64);
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 4, 7);
        }
        _tile_stored(0, out + d, wide_dim * 4L);
        _tile_stored(1, out + d + 16, wide_dim * 4L);
    }
}

#else

static inline float low(uint32_t pair) { return wide((uint16_t)pair); }
static inline float high(uint32_t pair) { return wide((uint16_t)(pair >> 16)); }

static void score(const uint16_t *q, const uint16_t *blocks, int wide_dim, int keys, int rows, float *scores) {
    for (int r = 0; r < rows; r++)
        for (int at = 0; at < keys; at += 16) {
            const uint32_t *pairs = (const uint32_t *)(blocks + (long)(at / 32 * 32) * wide_dim * 2);
            const uint16_t *query = q + (long)r * wide_dim;
            float sums[16] = {0};
            pairs += at % 32 / 16 * 16L * (wide_dim / 2);
            for (int p = 0; p < wide_dim / 2; p++)
                for (int j = 0; j < 16; j++)
                    sums[j] += wide(query[2 * p]) * low(pairs[p * 16 + j]) + wide(query[2 * p + 1]) * high(pairs[p * 16 + j]);
            memcpy(scores + (long)r * LINE + at, sums, sizeof sums);
        }
}

static float weigh(float *scores, int keys, float top, float root, uint16_t *weights) {
    float sum = 0.0f;
    (void)weights; /* they take the scores' place: nothing here multiplies 16 bits */
#pragma omp simd reduction(+ : sum)
    for (int j = 0; j < keys; j++) {
        scores[j] = power((scores[j] - top) * root);
        sum += scores[j];
    }
    return sum;
}

static void mix(const float *scores, const uint16_t *weights, const uint16_t *blocks, int wide_dim, int keys, int rows,
                float *out) {
    (void)weights;
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < keys; j += 2) {
            const uint32_t *pairs = (const uint32_t *)(blocks + (long)(j / 32 * 32) * wide_dim * 2 + 32 * wide_dim);
            const float *w = scores + (long)r * LINE + j;
            for (int d = 0; d < wide_dim; d++) {
                uint32_t pair = pairs[(d / 16 * 16 + j % 32 / 2) * 16 + d % 16];
                out[(long)r * wide_dim + d] += w[0] * low(pair) + w[1] * high(pair);
            }
        }
}

#endif

/* One chunk of keys, from `start` to `end`, into up to 16 rows from `row` on; `root` is log2(e) / sqrt(d). */
static void absorb(const View *v, const uint16_t *q, int row, int rows, const uint16_t *blocks, int start, int end,
                   float root, Space *space, int tile, float *out) {
    int wide_dim = padded(v->head_dim, 32), keys = end - start;
    const uint16_t *chunk = blocks + (long)start * wide_dim * 2;
    score(q, chunk, wide_dim, keys, rows, space->scores);
    for (int r = 0; r < rows; r++) {
        float *line = space->scores + r * LINE, *top = space->top + tile * 16 + r, *total = space->total + tile * 16 + r;
        hide(v, row + r, start, end, line);
        float higher = larger(highest(line, keys), *top), shrink = power((*top - higher) * root);
        *total = *total * shrink + weigh(line, keys, higher, root, space->weights + r * CHUNK);
        *top = higher;
        for (int d = 0; d < wide_dim; d++) out[r * wide_dim + d] *= shrink;
    }
    mix(space->scores, space->weights, chunk, wide_dim, keys, rows, out);
}

/* Up to TOGETHER tiles of 16 query rows [16][wide_dim] of one KV head, from row `row` of `many` on, to out. */
static void attend_tiles(const View *v, const uint16_t *q, int row, int tiles, int many, const uint16_t *blocks,
                         Space *space, float *out) {
    int wide_dim = padded(v->head_dim, 32), all = padded(v->context + v->tokens, 32);
    float root = LOG2_E / sqrtf((float)v->head_dim);
    memset(out, 0, 64L * tiles * wide_dim);
    memset(space->total, 0, sizeof space->total);
    for (int r = 0; r < tiles * 16; r++) space->top[r] = -INFINITY;
    for (int start = 0; start < all; start += CHUNK) {
        int end = all - start < CHUNK ? all : start + CHUNK;
        for (int i = 0; i < tiles; i++) {
            int first = row + i * 16, rows = many - first < 16 ? many - first : 16;
            long at = 16L * i * wide_dim;
            absorb(v, q + at, first, rows, blocks, start, end, root, space, i, out + at);
        }
    }
    for (int r = 0; r < tiles * 16; r++)
        for (int d = 0; d < wide_dim; d++) out[r * wide_dim + d] *= 1.0f / space->total[r];
}

#endif
