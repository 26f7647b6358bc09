/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The PCI provider's life; see pci.c. */
#ifndef GPUPART_KMOD_PCI_H
#define GPUPART_KMOD_PCI_H

int pci_gpus_init(void);
void pci_gpus_fini(void);

#endif
