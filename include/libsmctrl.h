/* SPDX-License-Identifier: MIT */
/*
 * The interface of libsmctrl. gpupart implements this interface for programs that were written
 * for libsmctrl.
 *
 * Masks have the same polarity as in libsmctrl: a bit that is SET FORBIDS its TPC. On every GPU,
 * bit i stands for TPC i. TPC i owns SMs 2i and 2i+1, numbered as in %smid. On GPUs with one SM
 * per TPC, TPC i owns SM i. A 64-bit mask also forbids all TPCs from number 64 on. On GPUs with
 * more than 64 TPCs use the functions that end in _ext. Alternatively, pass a 128-bit integer to
 * libsmctrl_set_global_mask() or libsmctrl_set_next_mask(). This header then calls the _ext form
 * of the function.
 *
 * The environment variable LIBSMCTRL_MASK may contain a hexadecimal mask. This mask applies to
 * every launch, in addition to the masks that the program sets. A launch may use only the TPCs
 * that all these masks allow. A leading "~" inverts the mask.
 *
 * No function ends the process. A function that fails prints one line on stderr and changes
 * nothing. For example, a function fails if its mask forbids all TPCs of a GPU. Any thread may
 * call any function.
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

/* Sets the mask of all launches of the process, on all its GPUs. */
void libsmctrl_set_global_mask(uint64_t mask);

/*
 * Sets the mask of launches on @stream, a CUstream or cudaStream_t. This mask replaces the global
 * mask for these launches. The handles 0, 1 and 2 are the default streams. Returns 0 or an errno.
 * The caller may ignore the result.
 */
int libsmctrl_set_stream_mask(void *stream, uint64_t mask);

/*
 * Sets the mask of the calling thread's next launch. This mask replaces the global mask and the
 * stream's mask for this launch.
 */
void libsmctrl_set_next_mask(uint64_t mask);

#ifdef __SIZEOF_INT128__
void libsmctrl_set_global_mask_ext(uint128_t mask);
int libsmctrl_set_stream_mask_ext(void *stream, uint128_t mask);
void libsmctrl_set_next_mask_ext(uint128_t mask);
#endif

/* Does the same as libsmctrl_set_global_mask(). The first releases had only this name. */
void set_sm_mask(uint64_t mask);

/* -------------------------------------------------------------- information */

/*
 * Stores the number of GPCs of a GPU in *nr_gpcs. Stores an array in *masks, with one mask of
 * TPCs for each GPC. In these masks a set bit means that the TPC belongs to the GPC. So the mask
 * that allows only GPC g is ~masks[g]. @dev is the number of the GPU in PCI order. The array
 * belongs to the library and is never freed. The result is 0 or an errno. If the number of a TPC
 * does not fit into the mask, the errno is ERANGE.
 */
int libsmctrl_get_gpc_info(uint32_t *nr_gpcs, uint64_t **masks, int dev);
#ifdef __SIZEOF_INT128__
int libsmctrl_get_gpc_info_ext(uint32_t *nr_gpcs, uint128_t **masks, int dev);
#endif

/*
 * Store the number of TPCs of a GPU in *nr_tpcs. @dev is the number of the GPU in PCI order, and
 * @cuda_dev is its number in CUDA's order. The result is 0 or an errno.
 */
int libsmctrl_get_tpc_info(uint32_t *nr_tpcs, int dev);
int libsmctrl_get_tpc_info_cuda(uint32_t *nr_tpcs, int cuda_dev);

/* ------------------------------------------------------------------ helpers */

/*
 * Sets *mask to the mask that allows TPCs @low to @high_exclusive - 1 and forbids all others.
 * Returns 0, or EINVAL if the range is empty or does not fit into the mask; *mask is then
 * unchanged.
 */
int libsmctrl_make_mask(uint64_t *mask, uint32_t low, uint32_t high_exclusive);
#ifdef __SIZEOF_INT128__
int libsmctrl_make_mask_ext(uint128_t *mask, uint32_t low, uint32_t high_exclusive);
#endif

/*
 * Makes one launch on @stream. The launch records the TPCs on which it runs. Returns 0 if these
 * TPCs are exactly TPCs @low to @high_exclusive - 1, and -1 if not. If @echo is true, the
 * function also prints the TPCs on stdout.
 */
int libsmctrl_validate_stream_mask(void *stream, int low, int high_exclusive, bool echo);

/*
 * Calls of these functions are optional. libsmctrl_init() and libsmctrl_init_from_cuda() prepare
 * the process's GPUs and return 0 or an errno. Without such a call, the first call that sets a
 * mask prepares the GPUs. libsmctrl_is_init() returns 1 if the GPUs are prepared, and 0 if not.
 * libsmctrl_get_version() returns the version of gpupart.
 */
int libsmctrl_init(void);
int libsmctrl_init_from_cuda(void);
int libsmctrl_is_init(void);
const char *libsmctrl_get_version(void);

#ifdef __cplusplus
}
#endif

/* ------- calls with 128-bit integers use the _ext form, which keeps the upper 64 bits */

#if defined(__SIZEOF_INT128__) && defined(__cplusplus)

extern "C++" {

/*
 * Restricts the templates to the two 128-bit types. With plain overloads, a call with an int or
 * an unsigned long long would be ambiguous.
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

/* C99 has no _Generic; compilers with 128-bit integers have this builtin. */
#define libsmctrl_set_global_mask(mask) \
	__builtin_choose_expr(sizeof(mask) > 8, libsmctrl_set_global_mask_ext, \
			      libsmctrl_set_global_mask)(mask)
#define libsmctrl_set_next_mask(mask) \
	__builtin_choose_expr(sizeof(mask) > 8, libsmctrl_set_next_mask_ext, \
			      libsmctrl_set_next_mask)(mask)

#endif

#endif /* LIBSMCTRL_H */
