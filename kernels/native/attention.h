/* Attention of all rows of a pass to one layer's keys and values, both bfloat16.
 *
 * out[r] = sum_j softmax_j(q[r] . k[j] / sqrt(d)) v[j], j over the context and, as the mask says, the pass's own tokens.
 * Keys and values are kept in blocks of 32 tokens as the multiplication wants them, so that a pass reads them once and
 * rearranges nothing. Row r of a KV head is token r / group and head r % group of that token.
 */
#ifndef REMASK_ATTENTION_H
#define REMASK_ATTENTION_H

#include "product.h"

typedef struct {
    int tokens, context, masked, group, head_dim;
    const uint8_t *mask; /* [tokens][masked], of the last keys, or NULL */
} View;

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

/* e^x for x <= 0, to 2e-7 relative; below -87 it is nothing. */
static inline float exponential(float x) {
    float bounded = larger(x, -87.0f), n = rintf(bounded * 1.44269504f);
    float f = (bounded - n * 0.693145752f) - n * 1.42860677e-6f;
    float p = 1.0f + f * (1.0f + f * (0.5f + f * (0.166666672f + f * (4.16664568e-2f + f * (8.33309e-3f + f * 1.3933e-3f)))));
    int32_t bits = ((int32_t)n + 127) << 23;
    float power;
    memcpy(&power, &bits, 4);
    return x < -87.0f ? 0.0f : p * power;
}

/* Scores times `root` to weights in place, [keys] of one row; returns 1 / their sum. */
static float soften(float *scores, int keys, float root) {
    float top = -INFINITY, sum = 0.0f;
#pragma omp simd reduction(max : top)
    for (int j = 0; j < keys; j++) top = larger(top, scores[j]);
#pragma omp simd reduction(+ : sum)
    for (int j = 0; j < keys; j++) {
        scores[j] = exponential((scores[j] - top) * root);
        sum += scores[j];
    }
    return 1.0f / sum;
}

static void hide(const View *v, int row, float *scores) {
    const uint8_t *mask = v->mask + (long)(row / v->group) * v->masked;
    int first = v->context + v->tokens - v->masked;
    for (int j = 0; j < v->masked; j++)
        if (!mask[j]) scores[first + j] = -INFINITY;
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

/* Scores of 16 query rows [16][wide_dim] with all keys: [16][all]. */
static void score(const uint16_t *q, const uint16_t *blocks, int wide_dim, int all, int rows, float *scores) {
    (void)rows;
    for (int at = 0; at < all; at += 32) {
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
        _tile_stored(0, scores + at, all * 4L);
        _tile_stored(1, scores + at + 16, all * 4L);
    }
}

/* Weights [16][all] times all values: [16][wide_dim]. */
static void mix(const float *scores, uint16_t *weights, const uint16_t *blocks, int wide_dim, int all, int rows,
                float *out) {
    for (int r = 0; r < rows; r++)
        for (long j = (long)r * all; j < (long)(r + 1) * all; j += 16)
            _mm256_storeu_si256((__m256i *)(weights + j), (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(scores + j)));
    for (int d = 0; d < wide_dim; d += 32) {
        _tile_zero(0);
        _tile_zero(1);
        for (int at = 0; at < all; at += 32) {
            const uint16_t *values = blocks + (long)at * wide_dim * 2 + 32 * wide_dim + d * 32;
            _tile_loadd(4, weights + at, all * 2L);
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

static void score(const uint16_t *q, const uint16_t *blocks, int wide_dim, int all, int rows, float *scores) {
    for (int r = 0; r < rows; r++)
        for (int at = 0; at < all; at += 16) {
            const uint32_t *pairs = (const uint32_t *)(blocks + (long)(at / 32 * 32) * wide_dim * 2);
            const uint16_t *query = q + (long)r * wide_dim;
            float sums[16] = {0};
            pairs += at % 32 / 16 * 16L * (wide_dim / 2);
            for (int p = 0; p < wide_dim / 2; p++)
                for (int j = 0; j < 16; j++)
                    sums[j] += wide(query[2 * p]) * low(pairs[p * 16 + j]) + wide(query[2 * p + 1]) * high(pairs[p * 16 + j]);
            memcpy(scores + (long)r * all + at, sums, sizeof sums);
        }
}

static void mix(const float *scores, uint16_t *weights, const uint16_t *blocks, int wide_dim, int all, int rows,
                float *out) {
    (void)weights;
    memset(out, 0, 4L * rows * wide_dim);
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < all; j += 2) {
            const uint32_t *pairs = (const uint32_t *)(blocks + (long)(j / 32 * 32) * wide_dim * 2 + 32 * wide_dim);
            const float *w = scores + (long)r * all + j;
            for (int d = 0; d < wide_dim; d++) {
                uint32_t pair = pairs[(d / 16 * 16 + j % 32 / 2) * 16 + d % 16];
                out[(long)r * wide_dim + d] += w[0] * low(pair) + w[1] * high(pair);
            }
        }
}

#endif

/* Up to 16 query rows [16][wide_dim] of one KV head, from row `row` on, to out [16][wide_dim]. */
static void attend_tile(const View *v, const uint16_t *q, int row, int rows, const uint16_t *blocks, float *scores,
                        uint16_t *weights, float *out) {
    int wide_dim = padded(v->head_dim, 32), keys = v->context + v->tokens, all = padded(keys, 32);
    float scale[16], root = 1.0f / sqrtf((float)v->head_dim);
    score(q, blocks, wide_dim, all, rows, scores);
    for (int r = 0; r < rows; r++) {
        float *line = scores + (long)r * all;
        if (v->mask) hide(v, row + r, line);
        for (int j = keys; j < all; j++) line[j] = -INFINITY;
        scale[r] = soften(line, all, root); /* whole blocks: sums have one order however many keys follow */
    }
    mix(scores, weights, blocks, wide_dim, all, rows, out);
    for (int r = 0; r < rows; r++)
        for (int d = 0; d < wide_dim; d++) out[r * wide_dim + d] *= scale[r];
}

#endif
