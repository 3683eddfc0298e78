// What moves the data of an enqueued communicator (enqueued_communicator.h):
// NCCL, or its stand-in in tests. It knows neither deadlines nor names.
//
// Each operation goes into the calling thread's queue of the device and returns
// as soon as it is there: a fence recorded after it stands behind it. It runs
// when the same operation of all members has come up in theirs, and until then
// it holds up what is behind it in the queue; if one never comes, for ever, or
// until Abort.
#ifndef TROUPE_WORKER_COLLECTIVE_ENQUEUED_TRANSPORT_H_
#define TROUPE_WORKER_COLLECTIVE_ENQUEUED_TRANSPORT_H_

#include <memory>

#include "absl/status/status.h"
#include "worker/collective/blocks.h"
#include "worker/collective/communicator.h"

namespace troupe {

// One thread at a time, but for Error and Abort.
class Transport {
 public:
  // May wait some seconds for what the peers still receive from here.
  virtual ~Transport() = default;

  // What the communicator's operations of these names ask for, on memory of the
  // device. An error: it is not in the queue. What `ranges` of blocks points to
  // need not outlive the call.
  virtual absl::Status AllReduce(const CommBuffer& data, ReduceOp op) = 0;
  virtual absl::Status ReduceScatter(const CommBlocks& send,
                                     const CommBuffer& receive,
                                     ReduceOp op) = 0;
  virtual absl::Status AllGather(const CommBuffer& send,
                                 const CommBlocks& receive) = 0;
  virtual absl::Status Reduce(const CommBuffer& data, int root,
                              ReduceOp op) = 0;
  virtual absl::Status Broadcast(const CommBuffer& data, int root) = 0;
  virtual absl::Status AllToAll(const CommBlocks& send,
                                const CommBlocks& receive) = 0;
  virtual absl::Status Send(const CommBuffer& data, int peer) = 0;
  virtual absl::Status Recv(const CommBuffer& data, int peer) = 0;
  virtual absl::Status Shift(const ShiftBuffers& buffers) = 0;

  // Held from before an operation is enqueued until it has run, where something
  // is to know that it is under way; null: nothing is.
  class Hold {
   public:
    virtual ~Hold() = default;
  };
  virtual std::unique_ptr<Hold> Begin() { return nullptr; }

  // What has gone wrong with operations under way, as far as it is noticed
  // here. Any thread; does not wait. Nobody asks once Abort was called.
  virtual absl::Status Error() = 0;

  // Makes what is under way run to its end soon, whatever it leaves in its
  // buffers, and calls fail. Any thread, any number of times. May take as long
  // as it takes to give the device's resources back, and that may be until all
  // that the device has under way has run, also for others.
  virtual void Abort() = 0;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_ENQUEUED_TRANSPORT_H_
