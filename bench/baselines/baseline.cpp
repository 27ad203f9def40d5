// SPDX-License-Identifier: BSD-3-Clause
#include "bench/baselines/baseline.hpp"

#include <algorithm>
#include <cstring>

namespace trifold::bench {

Layout layout_of(const io::TridiagonalData& data) {
    Layout out;
    const auto& extents = data.rhs.shape().extents;
    for (std::size_t d = 0; d < extents.size(); ++d) {
        if (static_cast<int>(d) < data.axis) out.outer *= extents[d];
        else if (static_cast<int>(d) == data.axis) out.rows = extents[d];
        else out.inner *= extents[d];
    }
    return out;
}

std::string OverwritingBaseline::load(const io::TridiagonalData& data) {
    data_ = &data;
    layout_ = layout_of(data);
    if (layout_.inner != 1) return "takes systems whose rows lie side by side only";
    const io::Shape shape = data.rhs.shape();
    for (io::Array* array : {&lower_, &diag_, &upper_, &rhs_}) *array = io::Array(shape, name());
    return {};
}

static void copy(const io::Array& to, const io::Array& from) {
    const std::int64_t bytes = from.shape().bytes(), block = 1 << 20;
#pragma omp parallel for
    for (std::int64_t at = 0; at < bytes; at += block)
        std::memcpy(static_cast<char*>(to.data()) + at, static_cast<const char*>(from.data()) + at,
                    static_cast<std::size_t>(std::min(block, bytes - at)));
}

void OverwritingBaseline::restore() {
    copy(lower_, data_->lower);
    copy(diag_, data_->diag);
    copy(upper_, data_->upper);
    copy(rhs_, data_->rhs);
}

}  // namespace trifold::bench
