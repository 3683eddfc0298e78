#include "worker/instructions/send.h"

#include "worker/instructions/transfer.h"

namespace troupe {

absl::Status RunSend(const Call& call) {
  const Transfer transfer = TransferOf(call);
  return transfer.communicator.Send(transfer.data, transfer.peer,
                                    transfer.options);
}

}  // namespace troupe
