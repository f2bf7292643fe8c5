/* Exact products of int8 matrices and activations of two int8 parts.
 *
 * out[t][n] = step[t] * scale[n] * (sum_k high[t][k] w[n][k] + sum_k low[t][k] w[n][k] / 127)
 *
 * A matrix lies in tiles of 16 outputs by 64 inputs, [n / 16][k / 64][16 groups][16 outputs][4 inputs]: what AMX
 * multiplies as it is, and what VNNI multiplies by one broadcast group of four inputs. Both are padded with zeros.
 * The sums are exact in int32, so a row's result depends on nothing beside it.
 */
#ifndef REMASK_PRODUCT_H
#define REMASK_PRODUCT_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

enum { TILE = 16, DEPTH = 64, BLOCK = 32 }; /* outputs of a tile, inputs of a tile, rows and outputs of a block */

typedef struct {
    const int8_t *tiles;
    const float *scale; /* [outputs, padded] */
    const int32_t *sums; /* [outputs, padded]: 128 times the sum of a row, for products of unsigned inputs */
    const float *bias;  /* [outputs] or NULL */
    const float *norm;  /* [inputs] or NULL: the weight of the RMS norm in front */
    int32_t outputs, inputs;
} Matrix;

static inline float larger(float a, float b) { return a > b ? a : b; }
static inline int padded(int count, int unit) { return (count + unit - 1) / unit * unit; }

/* The largest of a row's values times the weights of its norm, and the sum of the values' squares. */
static float peak_of(const float *x, const float *norm, int count, float *square);

/* A row (times the weights of its norm) in steps of 1 / `inverse`: the whole ones, and 127ths of a step; zeros behind. */
static void cut(const float *x, const float *norm, float inverse, int count, int width, int8_t *high, int8_t *low);

#if defined(__AVX512BW__)

static inline __m512 sixteen(const float *x, const float *norm, int i, int count) {
    int left = count - i;
    __mmask16 in = left >= 16 ? (__mmask16)0xffff : left > 0 ? (__mmask16)((1u << left) - 1) : (__mmask16)0;
    __m512 y = _mm512_maskz_loadu_ps(in, x + i);
    return norm ? _mm512_mul_ps(y, _mm512_maskz_loadu_ps(in, norm + i)) : y;
}

static float peak_of(const float *x, const float *norm, int count, float *square) {
    __m512 most[4], sums[4]; /* four each: one would wait for itself */
    for (int j = 0; j < 4; j++) most[j] = sums[j] = _mm512_setzero_ps();
    for (int i = 0; i < count; i += 64)
        for (int j = 0; j < 4; j++) {
            __m512 plain = sixteen(x, NULL, i + 16 * j, count);
            sums[j] = _mm512_fmadd_ps(plain, plain, sums[j]);
            most[j] = _mm512_max_ps(most[j], _mm512_abs_ps(norm ? sixteen(x, norm, i + 16 * j, count) : plain));
        }
    *square = _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3])));
    return _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(most[0], most[1]), _mm512_max_ps(most[2], most[3])));
}

static inline __m512i bytes(const __m512i *four) { /* in order: packing goes by quarters */
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i a = _mm512_packs_epi32(four[0], four[1]), b = _mm512_packs_epi32(four[2], four[3]);
    return _mm512_permutexvar_epi32(order, _mm512_packs_epi16(a, b));
}

static void cut(const float *x, const float *norm, float inverse, int count, int width, int8_t *high, int8_t *low) {
    __m512 by = _mm512_set1_ps(inverse), most = _mm512_set1_ps(127.0f), least = _mm512_set1_ps(-127.0f);
    for (int i = 0; i < width; i += 64) {
        __m512i whole[4], rest[4];
        for (int j = 0; j < 4; j++) {
            __m512 y = _mm512_mul_ps(sixteen(x, norm, i + 16 * j, count), by);
            y = _mm512_min_ps(_mm512_max_ps(y, least), most);
            whole[j] = _mm512_cvttps_epi32(y);
            rest[j] = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_sub_ps(y, _mm512_cvtepi32_ps(whole[j])), most));
        }
        _mm512_storeu_si512(high + i, bytes(whole));
        _mm512_storeu_si512(low + i, bytes(rest));
    }
}

#else

static float peak_of(const float *x, const float *norm, int count, float *square) {
    float peak = 0.0f, sum = 0.0f;
#pragma omp simd reduction(max : peak) reduction(+ : sum)
    for (int i = 0; i < count; i++) {
        peak = larger(peak, fabsf(norm ? x[i] * norm[i] : x[i]));
        sum += x[i] * x[i];
    }
    *square = sum;
    return peak;
}

static void cut(const float *x, const float *norm, float inverse, int count, int width, int8_t *high, int8_t *low) {
#pragma omp simd
    for (int i = 0; i < count; i++) {
        float y = (norm ? x[i] * norm[i] : x[i]) * inverse;
        y = larger(y, -127.0f);
        y = y < 127.0f ? y : 127.0f;
        float whole = truncf(y);
        high[i] = (int8_t)(int32_t)whole;
        low[i] = (int8_t)(int32_t)rintf((y - whole) * 127.0f);
    }
    memset(high + count, 0, width - count);
    memset(low + count, 0, width - count);
}

#endif

/* One row of activations to its two parts (`high`, then `low`, each `width` bytes) and its step. */
static void split_row(const float *x, const float *norm, float eps, int count, int width, int8_t *parts, float *step) {
    float square, peak = larger(peak_of(x, norm, count, &square) / 127.0f, 1e-30f);
    cut(x, norm, 1.0f / peak, count, width, parts, parts + width);
    *step = norm ? peak * (1.0f / sqrtf(square / count + eps)) : peak;
}

#if defined(__AMX_INT8__)

static void set_tiles(void) {
    struct __attribute__((packed)) {
        uint8_t palette, start, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } config = {.palette = 1};
    for (int i = 0; i < 8; i++) config.bytes[i] = 64, config.rows[i] = 16;
    _tile_loadconfig(&config);
}
static void release_tiles(void) { _tile_release(); }

/* Up to 32 rows by 32 outputs: parts [rows][depth * 64] to sums [32][32]. */
static void block_sums(const int8_t *parts, int rows, const int8_t *first, const int8_t *second, const int32_t *sums,
                       int depth, int32_t *out) {
    (void)sums;
    const int8_t *lower = parts + (long)TILE * depth * DEPTH;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int k = 0; k < depth; k++) {
        _tile_loadd(4, parts + k * DEPTH, depth * DEPTH);
        _tile_stream_loadd(6, first + (long)k * 1024, 64);
        _tile_stream_loadd(7, second + (long)k * 1024, 64);
        _tile_dpbssd(0, 4, 6);
        _tile_dpbssd(1, 4, 7);
        for (int line = 0; line < 1024; line += 64) { /* the next 32 outputs' weights, while these are multiplied */
            _mm_prefetch((const char *)first + (2L * depth + k) * 1024 + line, _MM_HINT_T1);
            _mm_prefetch((const char *)second + (2L * depth + k) * 1024 + line, _MM_HINT_T1);
        }
        if (rows > TILE) {
            _tile_loadd(5, lower + k * DEPTH, depth * DEPTH);
            _tile_dpbssd(2, 5, 6);
            _tile_dpbssd(3, 5, 7);
        }
    }
    _tile_stored(0, out, BLOCK * 4);
    _tile_stored(1, out + TILE, BLOCK * 4);
    if (rows > TILE) {
        _tile_stored(2, out + TILE * BLOCK, BLOCK * 4);
        _tile_stored(3, out + TILE * BLOCK + TILE, BLOCK * 4);
    }
}

#else

static void set_tiles(void) {}
static void release_tiles(void) {}

static inline int32_t group(const int8_t *row, int g) {
    int32_t four;
    memcpy(&four, row + g * 4, 4);
    return four;
}

/* Sums of one row with the 16 outputs of a column of tiles, a group of four inputs at a time. */
static inline void row_sums(const int8_t *row, const int8_t *tiles, const int32_t *sums, int depth, int32_t *out) {
    int groups = depth * TILE;
    (void)sums;
#if defined(__AVX512VNNI__)
    __m512i total = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_loadu_si512(sums));
    for (int g = 0; g < groups; g++, tiles += 64) { /* unsigned inputs: 128 more, and 128 times the weights less */
        __m512i x = _mm512_set1_epi32(group(row, g) ^ (int)0x80808080);
        total = _mm512_dpbusd_epi32(total, x, _mm512_loadu_si512(tiles));
    }
    _mm512_storeu_si512(out, total);
#elif defined(__AVXVNNI__)
    __m256i total[2];
    for (int i = 0; i < 2; i++)
        total[i] = _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_loadu_si256((const __m256i *)sums + i));
    for (int g = 0; g < groups; g++, tiles += 64) {
        __m256i x = _mm256_set1_epi32(group(row, g) ^ (int)0x80808080);
        for (int i = 0; i < 2; i++)
            total[i] = _mm256_dpbusd_avx_epi32(total[i], x, _mm256_loadu_si256((const __m256i *)tiles + i));
    }
    for (int i = 0; i < 2; i++) _mm256_storeu_si256((__m256i *)out + i, total[i]);
#elif defined(__AVX2__)
    __m256i total[4]; /* four outputs each, the sums of even and odd pairs of inputs beside each other */
    for (int i = 0; i < 4; i++) total[i] = _mm256_setzero_si256();
    for (int g = 0; g < groups; g++, tiles += 64) {
        __m256i x = _mm256_cvtepi8_epi16(_mm_set1_epi32(group(row, g)));
        for (int i = 0; i < 4; i++) {
            __m256i w = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)tiles + i));
            total[i] = _mm256_add_epi32(total[i], _mm256_madd_epi16(x, w));
        }
    }
    for (int i = 0; i < 4; i++) {
        int32_t pairs[8];
        _mm256_storeu_si256((__m256i *)pairs, total[i]);
        for (int n = 0; n < 4; n++) out[4 * i + n] = pairs[2 * n] + pairs[2 * n + 1];
    }
#elif defined(__ARM_FEATURE_DOTPROD)
    int32x4_t total[4] = {vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0)};
    for (int g = 0; g < groups; g++, tiles += 64) {
        int8x16_t x = vreinterpretq_s8_s32(vdupq_n_s32(group(row, g)));
        for (int i = 0; i < 4; i++) total[i] = vdotq_s32(total[i], vld1q_s8(tiles + 16 * i), x);
    }
    for (int i = 0; i < 4; i++) vst1q_s32(out + 4 * i, total[i]);
#else
    memset(out, 0, TILE * sizeof *out);
    for (int g = 0; g < groups; g++, tiles += 64)
        for (int n = 0; n < TILE; n++)
            for (int j = 0; j < 4; j++) out[n] += row[g * 4 + j] * tiles[n * 4 + j];
#endif
}

static void block_sums(const int8_t *parts, int rows, const int8_t *first, const int8_t *second, const int32_t *sums,
                       int depth, int32_t *out) {
    for (int r = 0; r < rows; r++) {
        row_sums(parts + (long)r * depth * DEPTH, first, sums, depth, out + r * BLOCK);
        row_sums(parts + (long)r * depth * DEPTH, second, sums + TILE, depth, out + r * BLOCK + TILE);
    }
}

#endif

/* 32 outputs from `at` on for all tokens: `parts` [2 * tokens, padded] (high and low of a token beside each other),
 * `step` [tokens], to `out` [tokens][stride]; added to what is there where `add`. */
static void columns(const Matrix *m, int at, const int8_t *parts, const float *step, int tokens, float *out, int stride,
                    int add) {
    int depth = padded(m->inputs, DEPTH) / DEPTH, many = m->outputs - at < BLOCK ? m->outputs - at : BLOCK;
    const int8_t *first = m->tiles + (long)at / TILE * depth * 1024;
    int32_t sums[BLOCK * BLOCK] __attribute__((aligned(64)));
    for (int r = 0; r < 2 * tokens; r += BLOCK) {
        int rows = 2 * tokens - r < BLOCK ? 2 * tokens - r : BLOCK;
        block_sums(parts + (long)r * depth * DEPTH, rows, first, first + (long)depth * 1024, m->sums + at, depth, sums);
        for (int t = 0; t < rows / 2; t++) {
            float *to = out + (long)(r / 2 + t) * stride;
            const int32_t *high = sums + 2 * t * BLOCK, *low = high + BLOCK;
            float s = step[r / 2 + t];
            for (int n = 0; n < many; n++) {
                float value = ((float)high[n] + (float)low[n] * (1.0f / 127.0f)) * (s * m->scale[at + n]);
                if (m->bias) value += m->bias[at + n];
                to[n] = add ? to[n] + value : value;
            }
        }
    }
}

/* Lays `rows` [outputs][inputs] into tiles, and `sums` [outputs, padded to 32]. */
void remask_pack(const int8_t *rows, int outputs, int inputs, int8_t *tiles, int32_t *sums) {
    int depth = padded(inputs, DEPTH) / DEPTH, width = padded(outputs, BLOCK);
    memset(tiles, 0, (long)width * depth * DEPTH);
    memset(sums, 0, width * sizeof *sums);
    for (int n = 0; n < outputs; n++) {
        int8_t *tile = tiles + (long)(n / TILE) * depth * 1024 + n % TILE * 4;
        for (int k = 0; k < inputs; k++) {
            tile[(long)(k / 4) * 64 + k % 4] = rows[(long)n * inputs + k];
            sums[n] += 128 * rows[(long)n * inputs + k];
        }
    }
}

#endif
