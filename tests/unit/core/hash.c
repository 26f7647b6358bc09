// SPDX-License-Identifier: MIT
/* Tests hash_words(): a change of one word must not be undone by a change of the next word. */
#include "lib/core/hash.h"
#include "tests/tap.h"

static uint64_t of(uint64_t first, uint64_t second)
{
	uint64_t words[] = { first, second };

	return hash_words(HASH_INIT, words, 2);
}

static uint64_t bit(int n)
{
	return 1ull << n;
}

int main(void)
{
	static const uint64_t masks[] = { 0, ~0ull, 0x5555555555555555ull, 0xffull };
	int same = 0, order = 0;

	for (unsigned int m = 0; m < sizeof(masks) / sizeof(masks[0]); m++)
		for (int i = 0; i < 64; i++) {
			order += of(bit(i), masks[m]) == of(masks[m], bit(i));
			same += of(masks[m] ^ bit(i), masks[m]) == of(masks[m], masks[m]);
			same += of(masks[m], masks[m] ^ bit(i)) == of(masks[m], masks[m]);
			for (int j = 0; j < 64; j++)
				for (int k = 0; k < 64; k++)
					same += of(masks[m] ^ bit(i), masks[m] ^ bit(j) ^ bit(k)) ==
						of(masks[m], masks[m]);
		}
	tap_ok(!same, "changes of one, two or three bits of two words: %d equal hashes", same);
	tap_ok(!order, "the same words in another order: %d equal hashes", order);
	return tap_done();
}
