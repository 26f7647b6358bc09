/* SPDX-License-Identifier: MIT */
/*
 * libsmctrl's interface, for programs that were written for it, on top of gpupart.
 *
 * Masks are libsmctrl's: a bit that is SET FORBIDS its TPC. Bit i is TPC i, which owns
 * SMs 2i and 2i+1 as %smid shows them (SM i where a GPU has one SM a TPC), on every
 * GPU. A 64-bit mask also forbids TPCs 64 and up; where a GPU has them, use the
 * functions that end in _ext, or hand a 128-bit integer to the global and the next
 * function: this header then takes their _ext form by itself.
 *
 * LIBSMCTRL_MASK in the environment is a mask in hexadecimal that holds beside all of
 * them ("~" in front inverts it).
 *
 * No function exits. What cannot be done is one line on stderr, and nothing is changed:
 * above all a mask that leaves a GPU no TPC. Any thread may call any function.
 */
#ifndef LIBSMCTRL_H
#define LIBSMCTRL_H

#ifndef __cplusplus
#include <stdbool.h>
#endif
#include <stdint.h>

#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 uint128_t;
__extension__ typedef __int128 libsmctrl_int128;
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------- partitioning */

/* For all launches of the process, on all its GPUs. */
void libsmctrl_set_global_mask(uint64_t mask);

/*
 * For launches on a CUstream or cudaStream_t; overrides the global mask. The handles
 * 0, 1 and 2 are the default streams. 0 or an errno; may be ignored.
 */
int libsmctrl_set_stream_mask(void *stream, uint64_t mask);

/* For the calling thread's next launch; overrides both. */
void libsmctrl_set_next_mask(uint64_t mask);

#ifdef __SIZEOF_INT128__
void libsmctrl_set_global_mask_ext(uint128_t mask);
int libsmctrl_set_stream_mask_ext(void *stream, uint128_t mask);
void libsmctrl_set_next_mask_ext(uint128_t mask);
#endif

/* The first releases' name of libsmctrl_set_global_mask(). */
void set_sm_mask(uint64_t mask);

/* -------------------------------------------------------------- information */

/*
 * A GPU's GPCs: how many, and for each the TPCs that belong to it (a set bit is a
 * member: the mask that leaves only GPC g is ~masks[g]). @dev counts GPUs in PCI order.
 * The array is the library's and stays. 0 or an errno; ERANGE where a TPC does not fit
 * into 64 bits.
 */
int libsmctrl_get_gpc_info(uint32_t *nr_gpcs, uint64_t **masks, int dev);
#ifdef __SIZEOF_INT128__
int libsmctrl_get_gpc_info_ext(uint32_t *nr_gpcs, uint128_t **masks, int dev);
#endif

/* A GPU's number of TPCs, by its number in PCI order or by CUDA's. 0 or an errno. */
int libsmctrl_get_tpc_info(uint32_t *nr_tpcs, int dev);
int libsmctrl_get_tpc_info_cuda(uint32_t *nr_tpcs, int cuda_dev);

/* ------------------------------------------------------------------ helpers */

/*
 * The mask that allows TPCs @low to @high_exclusive - 1 and forbids all others. 0, or
 * EINVAL for a range that is empty or does not fit: *mask stays as it was.
 */
int libsmctrl_make_mask(uint64_t *mask, uint32_t low, uint32_t high_exclusive);
#ifdef __SIZEOF_INT128__
int libsmctrl_make_mask_ext(uint128_t *mask, uint32_t low, uint32_t high_exclusive);
#endif

/*
 * One launch on @stream that records where it ran: 0 where that is exactly TPCs @low to
 * @high_exclusive - 1, else -1. With @echo it says on stdout what it saw.
 */
int libsmctrl_validate_stream_mask(void *stream, int low, int high_exclusive, bool echo);

/*
 * Not needed before any other function. The first two make the process's GPUs ready now
 * instead of at the first mask: 0 or an errno. The third is 1 after that, else 0. The
 * last is the version of gpupart.
 */
int libsmctrl_init(void);
int libsmctrl_init_from_cuda(void);
int libsmctrl_is_init(void);
const char *libsmctrl_get_version(void);

#ifdef __cplusplus
}
#endif

/* ---------------- 128-bit integers: the _ext form, or the upper 64 bits would be lost */

#if defined(__SIZEOF_INT128__) && defined(__cplusplus)

extern "C++" {

/*
 * For the two 128-bit types alone. Plain overloads would make a call with an int or an
 * unsigned long long ambiguous.
 */
template <typename T> struct libsmctrl_if_wide { };
template <> struct libsmctrl_if_wide<uint128_t> { typedef void type; };
template <> struct libsmctrl_if_wide<libsmctrl_int128> { typedef void type; };

template <typename T>
inline typename libsmctrl_if_wide<T>::type libsmctrl_set_global_mask(T mask)
{
	libsmctrl_set_global_mask_ext(static_cast<uint128_t>(mask));
}

template <typename T>
inline typename libsmctrl_if_wide<T>::type libsmctrl_set_next_mask(T mask)
{
	libsmctrl_set_next_mask_ext(static_cast<uint128_t>(mask));
}

}

#elif defined(__SIZEOF_INT128__) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L

#define libsmctrl_set_global_mask(mask) \
	_Generic((mask), \
		uint128_t: libsmctrl_set_global_mask_ext, \
		libsmctrl_int128: libsmctrl_set_global_mask_ext, \
		default: libsmctrl_set_global_mask)(mask)
#define libsmctrl_set_next_mask(mask) \
	_Generic((mask), \
		uint128_t: libsmctrl_set_next_mask_ext, \
		libsmctrl_int128: libsmctrl_set_next_mask_ext, \
		default: libsmctrl_set_next_mask)(mask)

#elif defined(__SIZEOF_INT128__) && defined(__GNUC__)

/* C99 has no _Generic; a compiler with 128-bit integers has this. */
#define libsmctrl_set_global_mask(mask) \
	__builtin_choose_expr(sizeof(mask) > 8, libsmctrl_set_global_mask_ext, \
			      libsmctrl_set_global_mask)(mask)
#define libsmctrl_set_next_mask(mask) \
	__builtin_choose_expr(sizeof(mask) > 8, libsmctrl_set_next_mask_ext, \
			      libsmctrl_set_next_mask)(mask)

#endif

#endif /* LIBSMCTRL_H */
