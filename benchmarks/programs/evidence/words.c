/* Text: words in a hash table, a tree of them, patterns, distances, formatting. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STEP = 31, SLOTS = 1024, LENGTH = 20000 };

typedef struct Entry {
    struct Entry *next, *left, *right;
    char text[24];
    int count;
} Entry;

static Entry *slots[SLOTS], *root;
static char text[LENGTH + 1];
static unsigned seed = 7;

static unsigned draw(unsigned bound) { return (seed = seed * 1103515245u + 12345u) / 65536u % bound; }

// split: __attribute__((noinline))
static unsigned hash(const char *word) {
    unsigned result = 5381;
    while (*word) result = result * STEP + (unsigned char)*word++;
    return result;
}

__attribute__((noinline)) static void write_text(void) {
    int at = 0;
    while (at < LENGTH - 12) {
        int length = 2 + (int)draw(6);
        while (length--) text[at++] = "etaoinshrdlu"[draw(12)];
        text[at++] = draw(9) ? ' ' : '.';
    }
    text[at] = 0;
}

__attribute__((noinline)) static Entry *enter(const char *word) {
    Entry **slot = &slots[hash(word) % SLOTS];
    for (Entry *each = *slot; each; each = each->next)
        if (!strcmp(each->text, word)) return each->count++, each;
    Entry *made = calloc(1, sizeof *made);
    if (!made) abort();
    strncpy(made->text, word, sizeof made->text - 1);
    made->next = *slot, made->count = 1;
    return *slot = made;
}

// early: __attribute__((noinline, used)) int added_early(const char *s) { int n = 0; while (*s) n = n * 3 + *s++; return n; }

__attribute__((noinline)) static void insert(Entry *entry) {
    Entry **place = &root;
    while (*place) {
        int order = strcmp(entry->text, (*place)->text);
        if (!order) return;
        place = order < 0 ? &(*place)->left : &(*place)->right;
    }
    *place = entry;
}

__attribute__((noinline)) static long walk(const Entry *entry, int depth) {
    return entry ? walk(entry->left, depth + 1) + entry->count * depth + walk(entry->right, depth + 1) : 0;
}

__attribute__((noinline)) static int matches(const char *pattern, const char *word) {
    for (; *pattern; pattern++, word++) {
        if (*pattern == '*') {
            do
                if (matches(pattern + 1, word)) return 1;
            while (*word++);
            return 0;
        }
        if (!*word || (*pattern != '?' && *pattern != *word)) return 0;
    }
    return !*word;
}

__attribute__((noinline)) static int distance(const char *a, const char *b) {
    int row[32], n = (int)strlen(b);
    for (int j = 0; j <= n; j++) row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int before = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int kept = row[j], best = before + (a[i - 1] != b[j - 1]);
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            row[j] = best, before = kept;
        }
    }
    return row[n];
}

__attribute__((noinline)) static long count_vowels(const char *s) {
    long n = 0;
    for (; *s; s++) switch (tolower((unsigned char)*s)) {
        case 'a': n += 1; break;
        case 'e': n += 2; break;
        case 'i': n += 3; break;
        case 'o': n += 5; break;
        case 'u': n += STEP; break;
        default: n ^= 1;
        }
    return n;
}

__attribute__((noinline)) static long clear(void) {
    long freed = 0;
    for (int i = 0; i < SLOTS; i++)
        while (slots[i]) {
            Entry *each = slots[i];
            slots[i] = each->next;
            free(each);
            freed++;
        }
    root = NULL;
    return freed;
}

__attribute__((noinline)) static long parse(void) {
    long sum = 0;
    char word[24];
    int length = 0;
    for (const char *s = text; *s; s++) {
        if (isalpha((unsigned char)*s)) {
            if (length < (int)sizeof word - 1) word[length++] = *s;
            continue;
        }
        word[length] = 0;
        length = 0;
        Entry *entry = enter(word);
        if (entry->count == 1) insert(entry);
        sum += matches("*t?e*", word) + distance(word, "treason");
    }
    return sum;
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    long sum = 0;
    char line[64];
    do {
        write_text();
        sum += parse() + walk(root, 1) + count_vowels(text);
        snprintf(line, sizeof line, "%ld %g", sum, (double)sum / 3);
        sum += clear() + (long)strlen(line);
    } while ((double)clock() / CLOCKS_PER_SEC < seconds);
    printf("%ld\n", sum);
    return 0;
}
// late: __attribute__((noinline, used)) int added_late(int x) { return x * 31 % 977; }
