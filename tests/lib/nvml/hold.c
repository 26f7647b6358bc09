// SPDX-License-Identifier: MIT
/*
 * A process of a tenant, for tests. hold TENANT [PCI QUOTA BYTES]... joins the tenant's ledger,
 * sets the quotas and charges the bytes. Then the program prints its pid and waits for the end of
 * stdin. "hold -q TENANT PCI QUOTA" changes a quota. "hold -s TENANT" removes the tenant's file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/ledger/ledger.h"
#include "tests/ledger_leave.h"

int main(int argc, char **argv)
{
	struct ledger *ledger;
	char c;

	if (argc == 5 && !strcmp(argv[1], "-q"))
		return ledger_set_quota_of(argv[2], argv[3], strtoull(argv[4], NULL, 10), true,
					   NULL) ? 1 : 0;
	if (argc == 3 && !strcmp(argv[1], "-s"))
		return !ledger_sweep(argv[2]);
	if (argc < 2 || ledger_join(argv[1], &ledger)) {
		fprintf(stderr, "hold: %s\n", argc < 2 ? "no tenant" : argv[1]);
		return 1;
	}
	for (int i = 2; i + 2 < argc; i += 3) {
		int gpu = ledger_gpu(ledger, argv[i]);

		if (gpu < 0)
			return 1;
		ledger_set_quota(ledger, gpu, strtoull(argv[i + 1], NULL, 10), NULL);
		ledger_charge_always(ledger, gpu, strtoull(argv[i + 2], NULL, 10));
	}
	printf("%d\n", getpid());
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	ledger_leave(ledger, false);
	return 0;
}
