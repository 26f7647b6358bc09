// SPDX-License-Identifier: MIT
/*
 * vfio GROUP ADDRESS: like a virtual machine, opens the device of a vfio-pci group. It works with
 * an IOMMU and without an IOMMU. The program reads BAR0, and prints "taken BOOT_0" with the
 * value. Until its input ends, it repeatedly switches the device's memory off and on and resets
 * the device. At the end, it prints the number of these repetitions.
 */
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void set_command(int device, const struct vfio_region_info *config, uint16_t command)
{
	if (pwrite(device, &command, 2, config->offset + PCI_COMMAND) != 2)
		die("PCI_COMMAND");
}

int main(int argc, char **argv)
{
	struct vfio_region_info bar0 = {
		.argsz = sizeof(bar0), .index = VFIO_PCI_BAR0_REGION_INDEX,
	};
	struct vfio_region_info config = {
		.argsz = sizeof(config), .index = VFIO_PCI_CONFIG_REGION_INDEX,
	};
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	unsigned int rounds = 0;
	int container, group, device;
	volatile uint32_t *boot_0;

	if (argc != 3)
		return 2;
	container = open("/dev/vfio/vfio", O_RDWR);
	group = open(argv[1], O_RDWR);
	if (container < 0 || group < 0)
		die(argv[1]);
	if (ioctl(group, VFIO_GROUP_SET_CONTAINER, &container) ||
	    ioctl(container, VFIO_SET_IOMMU,
		  strstr(argv[1], "noiommu") ? VFIO_NOIOMMU_IOMMU : VFIO_TYPE1_IOMMU))
		die("container");
	device = ioctl(group, VFIO_GROUP_GET_DEVICE_FD, argv[2]);
	if (device < 0 || ioctl(device, VFIO_DEVICE_GET_REGION_INFO, &bar0) ||
	    ioctl(device, VFIO_DEVICE_GET_REGION_INFO, &config))
		die(argv[2]);
	set_command(device, &config, PCI_COMMAND_MEMORY);
	boot_0 = mmap(NULL, 4096, PROT_READ, MAP_SHARED, device, bar0.offset);
	if (boot_0 == MAP_FAILED)
		die("BAR0");
	printf("taken %#x\n", *boot_0);
	fflush(stdout);
	while (!poll(&input, 1, 0)) {
		set_command(device, &config, 0);
		set_command(device, &config, PCI_COMMAND_MEMORY);
		if (ioctl(device, VFIO_DEVICE_RESET))
			die("reset");
		set_command(device, &config, PCI_COMMAND_MEMORY);
		rounds++;
	}
	printf("rounds %u\n", rounds);
	return 0;
}
