/* The best tokens behind each row and how likely they are; the scores of the whole vocabulary never lie in memory.
 *
 * likely[t] = score[t] - log sum_n exp(score[n]), n over all tokens but those out of reach.
 * Included by pass.c, whose products it uses. The vocabulary is taken in stripes whose scores stay in the processor's
 * cache. What a row's stripes say is put together in order, so that it depends neither on the rows beside it nor on the
 * number of threads.
 */
#ifndef REMASK_BEST_H
#define REMASK_BEST_H

enum { STRIPE = 512, BEST = 4 }; /* tokens; tokens named for a row */

typedef struct { /* of some scores: the best (the lower token first of equals), and the sum of e^(score - best[0]) */
    float best[BEST], total;
    int32_t token[BEST];
} Tally;

static void clear(Tally *tally) {
    tally->total = 0.0f;
    for (int i = 0; i < BEST; i++) tally->best[i] = -INFINITY, tally->token[i] = 0;
}

/* A score that comes behind all lower tokens' takes its place among the best. */
static void rank(Tally *tally, float score, int token) {
    int i = BEST - 1;
    if (!(score > tally->best[i])) return;
    for (; i > 0 && score > tally->best[i - 1]; i--)
        tally->best[i] = tally->best[i - 1], tally->token[i] = tally->token[i - 1];
    tally->best[i] = score, tally->token[i] = token;
}

/* One row's scores of a stripe whose first token is `first`; minus infinity for what is no token or out of reach. */
static void count_up(const float *scores, int first, Tally *tally) {
    float total = 0.0f;
    clear(tally);
    for (int at = 0; at < STRIPE; at += BLOCK) /* most blocks hold none of the best */
        if (highest(scores + at, BLOCK) > tally->best[BEST - 1])
            for (int i = at; i < at + BLOCK; i++) rank(tally, scores[i], first + i);
    float top = larger(tally->best[0], -3e38f); /* where all are out of reach none adds anything */
#pragma omp simd reduction(+ : total)
    for (int i = 0; i < STRIPE; i++) total += power((scores[i] - top) * LOG2_E);
    tally->total = total;
}

/* A row's stripes to its best tokens and their log-probabilities, [BEST] each. */
static void put_together(const Tally *tallies, int stripes, int64_t *tokens, float *likely) {
    Tally all;
    clear(&all);
    for (int s = 0; s < stripes; s++)
        for (int i = 0; i < BEST; i++) rank(&all, tallies[s].best[i], tallies[s].token[i]);
    for (int s = 0; s < stripes; s++) all.total += tallies[s].total * power((tallies[s].best[0] - all.best[0]) * LOG2_E);
    for (int i = 0; i < BEST; i++) {
        tokens[i] = all.token[i];
        likely[i] = all.best[i] - all.best[0] - logf(all.total);
    }
}

static long lay_out_best(const Matrix *m, int rows, int threads, char *base, Scratch *s, float **scores, Tally **tallies) {
    char *at = base;
    s->parts = (int8_t *)take(&at, (long)padded(2 * rows, BLOCK) * padded(m->inputs, DEPTH));
    s->step = (float *)take(&at, 4L * rows);
    *scores = (float *)take(&at, 4L * threads * rows * STRIPE);
    *tallies = (Tally *)take(&at, (long)rows * (padded(m->outputs, STRIPE) / STRIPE) * (long)sizeof(Tally));
    return at - base;
}

long remask_best_scratch(const Matrix *m, int rows, int threads) {
    Scratch s;
    float *scores;
    Tally *tallies;
    return lay_out_best(m, rows, threads, (char *)0, &s, &scores, &tallies) + 64;
}

/* x [rows][inputs], its norm before the matrix as in remask_product: the best `tokens` and how `likely` they are,
 * [rows][BEST] each. The `far` tokens in `never` are out of reach. */
void remask_best(const Matrix *m, float eps, int rows, const float *x, const int64_t *never, int far, char *scratch,
                 int threads, int64_t *tokens, float *likely) {
    Scratch s;
    float *scores;
    Tally *tallies;
    int stripes = padded(m->outputs, STRIPE) / STRIPE;
    lay_out_best(m, rows, threads, scratch + (64 - (uintptr_t)scratch % 64) % 64, &s, &scores, &tallies);
#pragma omp parallel num_threads(threads)
    {
        float *own = scores + (long)thread() * rows * STRIPE;
        set_tiles();
        split(x, m, eps, rows, &s);
#pragma omp for
        for (int stripe = 0; stripe < stripes; stripe++) {
            int first = stripe * STRIPE, count = m->outputs - first < STRIPE ? m->outputs - first : STRIPE;
            for (int at = 0; at < count; at += BLOCK)
                columns(m, first + at, s.parts, s.step, rows, own + at, STRIPE, 0);
            for (int r = 0; r < rows; r++) {
                float *line = own + (long)r * STRIPE;
                for (int i = count; i < STRIPE; i++) line[i] = -INFINITY;
                for (int i = 0; i < far; i++)
                    if (never[i] >= first && never[i] < first + count) line[never[i] - first] = -INFINITY;
                count_up(line, first, tallies + (long)r * stripes + stripe);
            }
        }
#pragma omp for
        for (int r = 0; r < rows; r++)
            put_together(tallies + (long)r * stripes, stripes, tokens + (long)r * BEST, likely + (long)r * BEST);
        release_tiles();
    }
}

#endif
