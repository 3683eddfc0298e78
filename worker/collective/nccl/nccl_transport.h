// NCCL as what moves the data of an enqueued communicator: its calls, on the
// stream of the calling thread.
//
// An all-to-all is one group of ncclSend and ncclRecv, in which peers without a
// block take no part. Their sizes are the host's arguments.
//
// NCCL's kernels run with that stream's priority, which is the lane's. It adds
// bf16 and fp16 up as they move, rounding what each member adds: half the bytes
// of sums in f32, no copies and no scratch. A maximum ignores NaNs.
#ifndef TROUPE_WORKER_COLLECTIVE_NCCL_NCCL_TRANSPORT_H_
#define TROUPE_WORKER_COLLECTIVE_NCCL_NCCL_TRANSPORT_H_

#include <memory>

#include "ops/cuda/cuda_device.h"
#include "worker/collective/enqueued/transport.h"
#include "worker/collective/nccl/comm.h"

namespace troupe {

// Of member `rank` of the group. Borrows the device.
struct NcclSeat {
  CudaDevice& device;
  int rank = 0;
  int size = 1;
};
std::unique_ptr<Transport> NewNcclTransport(const NcclSeat& seat,
                                            std::unique_ptr<NcclComm> comm);

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_NCCL_NCCL_TRANSPORT_H_
