#include "worker/instructions/recv.h"

#include "worker/instructions/transfer.h"

namespace troupe {

absl::Status RunRecv(const Call& call) {
  const Transfer transfer = TransferOf(call);
  return transfer.communicator.Recv(transfer.data, transfer.peer,
                                    transfer.options);
}

}  // namespace troupe
