#include "ops/cuda/thread_stream.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "ops/cuda/cuda_device.h"
#include "tests/ops/cuda/with_gpu.h"

namespace troupe {
namespace {

using ThreadStreamTest = WithGpu;

// Of less than a chunk, of exactly one, and of several.
TEST_F(ThreadStreamTest, CopiesOfPageableMemoryPassThroughChunks) {
  const auto stream = ThreadStream::Create(/*priority=*/0);
  ASSERT_TRUE(stream.ok()) << stream.status();
  for (const size_t bytes :
       {size_t{1}, size_t{4} << 20, (size_t{9} << 20) + 3}) {
    std::vector<unsigned char> out(bytes), back(bytes);
    for (size_t i = 0; i < bytes; ++i) {
      out[i] = static_cast<unsigned char>(i * 31 + (i >> 12));
    }
    const absl::StatusOr<void*> memory = device_->Allocate(bytes);
    ASSERT_TRUE(memory.ok()) << memory.status();
    ASSERT_TRUE((*stream)->CopyFromHost(*memory, out.data(), bytes).ok());
    ASSERT_TRUE((*stream)->CopyToHost(back.data(), *memory, bytes).ok());
    EXPECT_TRUE(out == back) << bytes;
    device_->Free(*memory);
  }
}

TEST_F(ThreadStreamTest, CopiesOfPinnedMemoryAreEnqueuedAsTheyAre) {
  const auto stream = ThreadStream::Create(/*priority=*/0);
  ASSERT_TRUE(stream.ok()) << stream.status();
  constexpr size_t kBytes = size_t{8} << 20;
  void* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, kBytes), cudaSuccess);
  auto* bytes = static_cast<unsigned char*>(pinned);
  std::fill_n(bytes, kBytes, 7);
  const absl::StatusOr<void*> memory = device_->Allocate(kBytes);
  ASSERT_TRUE(memory.ok()) << memory.status();
  ASSERT_TRUE((*stream)->CopyFromHost(*memory, pinned, kBytes).ok());
  ASSERT_EQ(cudaStreamSynchronize((*stream)->get()), cudaSuccess);
  std::fill_n(bytes, kBytes, 0);
  ASSERT_TRUE((*stream)->CopyToHost(pinned, *memory, kBytes).ok());
  ASSERT_EQ(cudaStreamSynchronize((*stream)->get()), cudaSuccess);
  EXPECT_EQ(std::count(bytes, bytes + kBytes, 7), ptrdiff_t{kBytes});
  device_->Free(*memory);
  cudaFreeHost(pinned);
}

TEST_F(ThreadStreamTest, ItsProductsHaveOneHandleAndWorkspace) {
  const auto stream = ThreadStream::Create(/*priority=*/0);
  ASSERT_TRUE(stream.ok()) << stream.status();
  const absl::StatusOr<Blas> blas = (*stream)->GetBlas();
  ASSERT_TRUE(blas.ok()) << blas.status();
  EXPECT_NE(blas->handle, nullptr);
  EXPECT_NE(blas->workspace, nullptr);
  EXPECT_EQ((*stream)->GetBlas()->handle, blas->handle);
}

}  // namespace
}  // namespace troupe
