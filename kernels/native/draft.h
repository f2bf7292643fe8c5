/* A draft head: tokens one after another from a hidden state. The formulas are those of models/draft_head.py.
 *
 * Included by pass.c, whose products it uses. One call drafts a whole guess: between two passes little of the head and
 * of what calls it lies in the processor's caches.
 */
#ifndef REMASK_DRAFT_H
#define REMASK_DRAFT_H

enum { CHOICES = 3 }; /* tokens named at each place */

typedef struct {
    Matrix parts, output, listed; /* [2 inner + width][2 width], [width][inner], [listed][width]; the last has a norm */
    const int8_t *embedding;      /* [vocab][width] */
    const float *embedding_scale; /* [vocab] */
    const int64_t *tokens;        /* [listed] */
    int32_t width, inner;
} Head;

static const float RMS_EPS = 1e-6f;

static void unit(const float *x, int count, float *to) {
    float square = 0.0f;
#pragma omp simd reduction(+ : square)
    for (int i = 0; i < count; i++) square += x[i] * x[i];
    float factor = 1.0f / sqrtf(square / count + RMS_EPS);
#pragma omp simd
    for (int i = 0; i < count; i++) to[i] = x[i] * factor;
}

/* The best CHOICES of the scores, and their shares of the sum of all powers. Overwrites the scores. */
static void best_of(float *scores, int count, const int64_t *listed, int64_t *tokens, float *chances) {
    float total = 0.0f, peak = -INFINITY;
    int at[CHOICES] = {0};
#pragma omp simd reduction(max : peak)
    for (int i = 0; i < count; i++) peak = larger(peak, scores[i]);
#pragma omp simd reduction(+ : total)
    for (int i = 0; i < count; i++) {
        scores[i] = power((scores[i] - peak) * LOG2_E);
        total += scores[i];
    }
    for (int c = 0; c < CHOICES; c++) chances[c] = -1.0f;
    for (int i = 0; i < count; i++) {
        if (scores[i] <= chances[CHOICES - 1]) continue;
        int c = CHOICES - 1;
        for (; c > 0 && scores[i] > chances[c - 1]; c--) chances[c] = chances[c - 1], at[c] = at[c - 1];
        chances[c] = scores[i], at[c] = i;
    }
    for (int c = 0; c < CHOICES; c++) tokens[c] = listed[at[c]], chances[c] = larger(chances[c], 0.0f) / total;
}

static long lay_out_draft(const Head *h, char *base, Scratch *s, float **x, float **joined, float **scores) {
    char *at = base;
    int most = 2 * h->width > h->inner ? 2 * h->width : h->inner;
    s->parts = (int8_t *)take(&at, (long)BLOCK * padded(most, DEPTH));
    s->step = (float *)take(&at, 4);
    *x = (float *)take(&at, 4L * 3 * h->width); /* the state, and what is multiplied: its unit and the token's */
    *joined = (float *)take(&at, 4L * (2 * h->inner + h->width));
    *scores = (float *)take(&at, 4L * h->listed.outputs);
    return at - base;
}

long remask_draft_scratch(const Head *h) {
    Scratch s;
    float *x, *joined, *scores;
    return lay_out_draft(h, (char *)0, &s, &x, &joined, &scores) + 64;
}

/* Up to `size` places behind `token`: their best `tokens` and `chances` [size][CHOICES]. Ends behind a place with which
 * the product of the first choices' chances falls below `sure`; returns how many places there are. */
int remask_draft(const Head *h, const float *hidden, int64_t token, int size, float sure, int threads, char *scratch,
                 int64_t *tokens, float *chances) {
    Scratch s;
    float *x, *joined, *scores, chance = 1.0f;
    int count = 0, width = h->width, inner = h->inner;
    lay_out_draft(h, scratch + (64 - (uintptr_t)scratch % 64) % 64, &s, &x, &joined, &scores);
    unit(hidden, width, x);
    (void)threads;
#pragma omp parallel num_threads(threads)
    {
        set_tiles();
        while (count < size && chance >= sure) {
#pragma omp single
            {
                const int8_t *row = h->embedding + token * width;
                unit(x, width, x + width);
                for (int i = 0; i < width; i++) x[2 * width + i] = row[i] * h->embedding_scale[token];
                unit(x + 2 * width, width, x + 2 * width);
            }
            split(x + width, &h->parts, 0.0f, 1, &s);
            multiply(&h->parts, 1, joined, 0, &s);
#pragma omp single
            for (int i = 0; i < inner; i++) {
                float a = joined[i], e = power(-fabsf(a) * LOG2_E);
                joined[i] = a * ((a > 0 ? 1.0f : e) / (1.0f + e)) * joined[inner + i];
            }
            split(joined, &h->output, 0.0f, 1, &s);
            multiply(&h->output, 1, x, 1, &s);
#pragma omp single
            for (int i = 0; i < width; i++) x[i] += joined[2 * inner + i];
            split(x, &h->listed, RMS_EPS, 1, &s);
            multiply(&h->listed, 1, scores, 0, &s);
#pragma omp single
            {
                best_of(scores, h->listed.outputs, h->tokens, tokens + count * CHOICES, chances + count * CHOICES);
                token = tokens[count * CHOICES];
                chance *= chances[count * CHOICES];
                count++;
            }
        }
        release_tiles();
    }
    return count;
}

#endif
