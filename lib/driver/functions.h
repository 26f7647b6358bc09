/* SPDX-License-Identifier: MIT */
/*
 * The numbers of the driver functions that observers watch. The numbers come from CUPTI's public
 * header cupti_driver_cbid.h. For example, CBID_cuInit is 1. The list is in the order of these
 * numbers.
 */
#ifndef GPUPART_LIB_DRIVER_FUNCTIONS_H
#define GPUPART_LIB_DRIVER_FUNCTIONS_H

#define DRIVER_FUNCTIONS(F) \
	F(1, cuInit) F(9, cuDeviceGetAttribute) F(10, cuCtxCreate) F(11, cuCtxDestroy) \
	F(13, cuCtxDetach) F(17, cuCtxSynchronize) F(18, cuModuleLoad) \
	F(19, cuModuleLoadData) F(20, cuModuleLoadDataEx) F(21, cuModuleLoadFatBinary) \
	F(22, cuModuleUnload) F(29, cuMemAlloc) F(30, cu64MemAlloc) \
	F(31, cuMemAllocPitch) F(32, cu64MemAllocPitch) F(87, cuArrayCreate) \
	F(89, cuArrayDestroy) F(90, cuArray3DCreate) F(115, cuLaunch) \
	F(116, cuLaunchGrid) F(117, cuLaunchGridAsync) F(120, cuEventQuery) \
	F(121, cuEventSynchronize) F(125, cuStreamQuery) \
	F(126, cuStreamSynchronize) F(136, cuCtxSetLimit) F(174, cuGLCtxCreate) \
	F(187, cuVDPAUCtxCreate) F(228, cu64ArrayCreate) F(230, cu64Array3DCreate) \
	F(235, cuCtxCreate_v2) F(239, cuGLCtxCreate_v2) F(240, cuVDPAUCtxCreate_v2) \
	F(242, cuMemGetInfo_v2) F(243, cuMemAlloc_v2) F(244, cuMemAllocPitch_v2) \
	F(245, cuMemFree_v2) F(259, cuDeviceTotalMem_v2) F(272, cuArrayCreate_v2) \
	F(274, cuArray3DCreate_v2) F(276, cuMemcpyHtoD_v2) F(277, cuMemcpyHtoDAsync_v2) \
	F(278, cuMemcpyDtoH_v2) F(279, cuMemcpyDtoHAsync_v2) F(280, cuMemcpyDtoD_v2) \
	F(281, cuMemcpyDtoDAsync_v2) F(282, cuMemcpyAtoH_v2) \
	F(283, cuMemcpyAtoHAsync_v2) F(284, cuMemcpyAtoD_v2) F(285, cuMemcpyDtoA_v2) \
	F(286, cuMemcpyAtoA_v2) F(287, cuMemcpy2D_v2) F(288, cuMemcpy2DUnaligned_v2) \
	F(289, cuMemcpy2DAsync_v2) F(290, cuMemcpy3D_v2) F(291, cuMemcpy3DAsync_v2) \
	F(292, cuMemcpyHtoA_v2) F(293, cuMemcpyHtoAAsync_v2) F(305, cuMemcpy) \
	F(306, cuMemcpyAsync) F(307, cuLaunchKernel) F(318, cuMemcpyPeer) \
	F(319, cuMemcpyPeerAsync) F(320, cuMemcpy3DPeer) F(321, cuMemcpy3DPeerAsync) \
	F(322, cuCtxDestroy_v2) F(329, cuIpcOpenMemHandle) F(330, cuIpcCloseMemHandle) \
	F(347, cuMipmappedArrayCreate) F(349, cuMipmappedArrayDestroy) \
	F(371, cuMemAllocManaged) F(384, cuOccupancyMaxPotentialBlockSize) \
	F(386, cuDevicePrimaryCtxRetain) F(387, cuDevicePrimaryCtxRelease) \
	F(389, cuDevicePrimaryCtxReset) F(397, cuMemcpyHtoD_v2_ptds) \
	F(398, cuMemcpyDtoH_v2_ptds) F(399, cuMemcpyDtoD_v2_ptds) \
	F(400, cuMemcpyDtoA_v2_ptds) F(401, cuMemcpyAtoD_v2_ptds) \
	F(402, cuMemcpyHtoA_v2_ptds) F(403, cuMemcpyAtoH_v2_ptds) \
	F(404, cuMemcpyAtoA_v2_ptds) F(405, cuMemcpy2D_v2_ptds) \
	F(406, cuMemcpy2DUnaligned_v2_ptds) F(407, cuMemcpy3D_v2_ptds) \
	F(408, cuMemcpy_ptds) F(409, cuMemcpyPeer_ptds) F(410, cuMemcpy3DPeer_ptds) \
	F(418, cuMemcpyAsync_ptsz) F(419, cuMemcpyHtoAAsync_v2_ptsz) \
	F(420, cuMemcpyAtoHAsync_v2_ptsz) F(421, cuMemcpyHtoDAsync_v2_ptsz) \
	F(422, cuMemcpyDtoHAsync_v2_ptsz) F(423, cuMemcpyDtoDAsync_v2_ptsz) \
	F(424, cuMemcpy2DAsync_v2_ptsz) F(425, cuMemcpy3DAsync_v2_ptsz) \
	F(426, cuMemcpyPeerAsync_ptsz) F(427, cuMemcpy3DPeerAsync_ptsz) \
	F(439, cuStreamQuery_ptsz) F(440, cuStreamSynchronize_ptsz) F(442, cuLaunchKernel_ptsz) \
	F(452, cuOccupancyMaxPotentialBlockSizeWithFlags) \
	F(477, cuLaunchCooperativeKernel) F(478, cuLaunchCooperativeKernel_ptsz) \
	F(480, cuLaunchCooperativeKernelMultiDevice) F(485, cuImportExternalMemory) \
	F(488, cuDestroyExternalMemory) F(495, cuStreamBeginCapture) \
	F(496, cuStreamBeginCapture_ptsz) F(497, cuStreamEndCapture) \
	F(498, cuStreamEndCapture_ptsz) F(513, cuGraphInstantiate) F(514, cuGraphLaunch) \
	F(515, cuGraphLaunch_ptsz) F(516, cuGraphExecDestroy) \
	F(538, cuGraphExecKernelNodeSetParams) F(539, cuStreamBeginCapture_v2) \
	F(540, cuStreamBeginCapture_v2_ptsz) F(544, cuDevicePrimaryCtxRelease_v2) \
	F(545, cuDevicePrimaryCtxReset_v2) F(549, cuMemCreate) F(550, cuMemRelease) \
	F(551, cuMemMap) F(552, cuMemUnmap) F(555, cuMemImportFromShareableHandle) \
	F(561, cuGraphExecUpdate) F(562, cuGraphExecMemcpyNodeSetParams) \
	F(563, cuGraphExecMemsetNodeSetParams) F(564, cuGraphExecHostNodeSetParams) \
	F(565, cuMemRetainAllocationHandle) F(567, cuIpcOpenMemHandle_v2) \
	F(578, cuGraphInstantiate_v2) F(580, cuGraphUpload) F(581, cuGraphUpload_ptsz) \
	F(586, cuGraphExecChildGraphNodeSetParams) \
	F(595, cuGraphExecEventRecordNodeSetEvent) \
	F(596, cuGraphExecEventWaitNodeSetEvent) F(598, cuMemAllocAsync) \
	F(599, cuMemAllocAsync_ptsz) F(600, cuMemFreeAsync) F(601, cuMemFreeAsync_ptsz) \
	F(602, cuMemPoolTrimTo) F(603, cuMemPoolSetAttribute) F(607, cuMemPoolCreate) \
	F(608, cuMemPoolDestroy) F(609, cuDeviceSetMemPool) \
	F(611, cuMemAllocFromPoolAsync) F(612, cuMemAllocFromPoolAsync_ptsz) \
	F(624, cuGraphExecExternalSemaphoresSignalNodeSetParams) \
	F(625, cuGraphExecExternalSemaphoresWaitNodeSetParams) \
	F(640, cuDeviceGraphMemTrim) F(643, cuGraphInstantiateWithFlags) \
	F(645, cuCtxCreate_v3) F(646, cuCtxGetExecAffinity) \
	F(650, cuGraphNodeSetEnabled) F(652, cuLaunchKernelEx) \
	F(653, cuLaunchKernelEx_ptsz) F(656, cuGraphInstantiateWithParams) \
	F(657, cuGraphInstantiateWithParams_ptsz) \
	F(672, cuGraphExecBatchMemOpNodeSetParams) \
	F(675, cuOccupancyMaxPotentialClusterSize) F(676, cuOccupancyMaxActiveClusters) \
	F(678, cuLibraryLoadData) F(679, cuLibraryLoadFromFile) F(680, cuLibraryUnload) \
	F(692, cuGraphExecKernelNodeSetParams_v2) F(696, cuGraphExecUpdate_v2) \
	F(714, cuGraphExecNodeSetParams) F(720, cuStreamBeginCaptureToGraph) \
	F(721, cuStreamBeginCaptureToGraph_ptsz) F(744, cuGreenCtxDestroy) \
	F(745, cuDeviceGetDevResource) F(746, cuCtxGetDevResource) \
	F(747, cuGreenCtxGetDevResource) F(757, cuCtxCreate_v4) \
	F(776, cuMemcpyBatchAsync) F(777, cuMemcpyBatchAsync_ptsz) \
	F(778, cuMemcpy3DBatchAsync) F(779, cuMemcpy3DBatchAsync_ptsz) \
	F(796, cuMemcpyBatchAsync_v2) F(797, cuMemcpyBatchAsync_v2_ptsz) \
	F(798, cuMemcpy3DBatchAsync_v2) F(799, cuMemcpy3DBatchAsync_v2_ptsz) \
	F(800, cuCtxSynchronize_v2) F(801, cuMemGetDefaultMemPool) \
	F(802, cuMemGetMemPool) F(803, cuMemSetMemPool)

#define DRIVER_CBID(cbid, name) CBID_##name = cbid,
enum { DRIVER_FUNCTIONS(DRIVER_CBID) };
#undef DRIVER_CBID

#endif
