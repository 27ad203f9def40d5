// SPDX-License-Identifier: BSD-3-Clause
#include "api/kept_layout.hpp"

#include <algorithm>
#include <cstdlib>

namespace trifold::tridiagonal {
namespace {

using devices::StridedCopy;

/// A caller's array of one band: row i of the kept one is its row i + shift, for i in [first, last).
struct Source {
    const AnyView* view = nullptr;  ///< null: a number
    std::int64_t shift = 0, first = 0, last = 0;
    std::int64_t corner_row = -1, corner_from = 0;  ///< of a transposed ring: a row that comes from the other end
};

bool has_rows(const AnyView& view, std::int64_t rows) { return rows > 1 && view.axis.stride != 0; }

bool has(const AnyView& view, int batch_dim) {
    return view.batch_dims > 0 && view.batch[static_cast<std::size_t>(batch_dim)].stride != 0 && view.batch[static_cast<std::size_t>(batch_dim)].extent > 1;
}

class Layout {
public:
    Layout(const Matrix& matrix, std::int64_t rows, std::span<const std::int64_t> batch, const KeptLayout& before) : rows_(rows), batch_(batch) {
        out_.matrix = matrix;
        out_.matrix.transposed = false;
        find_sources(matrix);
        find_order();
        if (is_like(before)) out_.order = before.order;
        Coefficient* const coefficients[] = {&out_.matrix.lower, &out_.matrix.diag, &out_.matrix.upper};
        for (std::size_t k = 0; k < 3; ++k) {
            if (!sources_[k].view) continue;
            lay_out(sources_[k], out_.bands[k]);
            *coefficients[k] = out_.bands[k].view;
        }
    }

    KeptLayout take() { return out_; }

private:
    void find_sources(const Matrix& m) {
        const auto is_packed = [this](const AnyView& view) { return view.axis.extent == rows_ - 1; };
        const AnyView* const lower = std::get_if<AnyView>(&m.lower);
        const AnyView* const upper = std::get_if<AnyView>(&m.upper);
        sources_[1] = {std::get_if<AnyView>(&m.diag), 0, 0, rows_};
        if (m.transposed) {
            out_.matrix.lower = m.upper, out_.matrix.upper = m.lower;
            sources_[0] = {upper, -1, 1, rows_};
            sources_[2] = {lower, lower && is_packed(*lower) ? 0 : 1, 0, rows_ - 1};
            if (m.periodic) sources_[0].corner_row = 0, sources_[0].corner_from = rows_ - 1, sources_[2].corner_row = rows_ - 1, sources_[2].corner_from = 0;
        } else {
            sources_[0] = {lower, lower && is_packed(*lower) ? -1 : 0, m.periodic ? 0 : 1, rows_};
            sources_[2] = {upper, 0, 0, m.periodic ? rows_ : rows_ - 1};
        }
        // One row couples to nothing: the arrays may be empty.
        if (rows_ == 1 && !m.periodic) out_.matrix.lower = out_.matrix.upper = 0.0, sources_[0].view = sources_[2].view = nullptr;
    }

    void find_order() {
        const AnyView* leads = nullptr;
        std::int64_t most = 0;
        for (const std::size_t k : {1, 0, 2}) {
            const AnyView* const view = sources_[k].view;
            if (!view) continue;
            std::int64_t elements = has_rows(*view, rows_) ? rows_ : 1;
            for (int d = 0; d < static_cast<int>(batch_.size()); ++d) {
                if (!has(*view, d)) continue;
                out_.varies[static_cast<std::size_t>(d)] = true;
                elements *= batch_[static_cast<std::size_t>(d)];
            }
            if (elements > most) most = elements, leads = view;
        }
        out_.dims = 1 + static_cast<int>(batch_.size());
        for (int k = 0; k < out_.dims; ++k) out_.order[static_cast<std::size_t>(k)] = (k + 1) % out_.dims;  // rows the fastest
        if (!leads) return;
        // What the largest array shares counts as the slowest.
        const auto step = [&](int k) {
            const bool there = k == 0 ? has_rows(*leads, rows_) : has(*leads, k - 1);
            return !there ? INT64_MAX : std::llabs(k == 0 ? leads->axis.stride : leads->batch[static_cast<std::size_t>(k - 1)].stride);
        };
        std::stable_sort(out_.order.begin(), out_.order.begin() + out_.dims, [&](int a, int b) { return step(a) > step(b); });
    }

    bool is_like(const KeptLayout& before) const {
        bool alike = before.dims == out_.dims;
        for (std::size_t k = 0; alike && k < 3; ++k) {
            const AnyView &was = before.bands[k].view, *const view = sources_[k].view;
            alike = (before.bands[k].elements > 0) == (view != nullptr);
            if (!alike || !view) continue;
            alike = (was.axis.stride != 0) == has_rows(*view, rows_);
            for (int d = 0; d < static_cast<int>(batch_.size()); ++d) alike = alike && (was.batch[static_cast<std::size_t>(d)].stride != 0) == has(*view, d);
        }
        return alike;
    }

    void lay_out(const Source& source, KeptBand& band) const {
        const AnyView& from = *source.view;
        AnyView& to = band.view;
        to = from;
        to.data = nullptr, to.writable = false;
        to.axis = {rows_, 0};
        to.batch_dims = static_cast<int>(batch_.size());
        to.batch.fill({1, 0});
        band.elements = 1;
        for (int k = out_.dims - 1; k >= 0; --k) {
            const int dim = out_.order[static_cast<std::size_t>(k)];
            if (dim == 0 ? !has_rows(from, rows_) : !has(from, dim - 1)) continue;
            if (dim == 0) to.axis.stride = band.elements;
            else to.batch[static_cast<std::size_t>(dim - 1)] = {batch_[static_cast<std::size_t>(dim - 1)], band.elements};
            band.elements *= dim == 0 ? rows_ : batch_[static_cast<std::size_t>(dim - 1)];
        }
        if (!has_rows(from, rows_)) {
            band.pieces[static_cast<std::size_t>(band.count++)] = rows_of(from, to, 0, 0, 1);
            return;
        }
        band.pieces[static_cast<std::size_t>(band.count++)] = rows_of(from, to, source.first + source.shift, source.first, source.last - source.first);
        if (source.corner_row >= 0) band.pieces[static_cast<std::size_t>(band.count++)] = rows_of(from, to, source.corner_from, source.corner_row, 1);
        else if (source.last - source.first < rows_) {
            band.outside = rows_of(from, to, 0, source.first > 0 ? 0 : rows_ - 1, 1);
            band.outside.copy.from = nullptr;
            std::ranges::fill(band.outside.copy.from_stride, 0);
            band.has_outside = true;
        }
    }

    // Neighbouring dimensions that are one in both arrays are merged.
    KeptPiece rows_of(const AnyView& from, const AnyView& to, std::int64_t from_row, std::int64_t to_row, std::int64_t rows) const {
        KeptPiece piece;
        StridedCopy& c = piece.copy;
        c.dtype = from.dtype;
        c.dims = 1, c.extent[0] = 1;
        for (int k = 0; k < out_.dims; ++k) {
            const int dim = out_.order[static_cast<std::size_t>(k)];
            const auto d = static_cast<std::size_t>(std::max(dim - 1, 0));
            const std::int64_t extent = dim == 0 ? rows : to.batch[d].extent;
            if (extent == 1) continue;
            const std::int64_t read = dim == 0 ? from.axis.stride : from.batch[d].stride, write = dim == 0 ? to.axis.stride : to.batch[d].stride;
            const int last = c.dims - 1;
            if (c.extent[last] == 1) c.extent[last] = extent;
            else if (c.from_stride[last] == read * extent && c.to_stride[last] == write * extent) c.extent[last] *= extent;
            else c.extent[c.dims++] = extent;
            c.from_stride[c.dims - 1] = read, c.to_stride[c.dims - 1] = write;
        }
        const auto bytes = static_cast<std::int64_t>(size_of(from.dtype));
        c.from = static_cast<const char*>(from.data) + from_row * from.axis.stride * bytes;
        piece.to_byte = to_row * to.axis.stride * bytes;
        return piece;
    }

    KeptLayout out_;
    std::int64_t rows_;
    std::span<const std::int64_t> batch_;
    std::array<Source, 3> sources_;
};

template <class T>
void copy_elements(const StridedCopy& c, int threads) {
    const T* const from = static_cast<const T*>(c.from);
    T* const to = static_cast<T*>(c.to);
    const int fast = c.dims - 1;
    const std::int64_t count = c.extent[fast], read = c.from_stride[fast], write = c.to_stride[fast];
    std::int64_t lines = 1;
    for (int d = 0; d < fast; ++d) lines *= c.extent[d];
#pragma omp parallel for num_threads(threads) schedule(static) if (lines * count > (1 << 15))
    for (std::int64_t line = 0; line < lines; ++line) {
        std::int64_t rest = line, source = 0, target = 0;
        for (int d = fast - 1; d >= 0; --d) {
            const std::int64_t index = rest % c.extent[d];
            rest /= c.extent[d], source += index * c.from_stride[d], target += index * c.to_stride[d];
        }
        for (std::int64_t i = 0; i < count; ++i) to[target + i * write] = from[source + i * read];
    }
}

}  // namespace

bool KeptBand::is_a_copy() const noexcept {
    const StridedCopy& first = pieces[0].copy;
    return count == 1 && !has_outside && first.dims == 1 && (first.extent[0] == 1 || (first.from_stride[0] == 1 && first.to_stride[0] == 1));
}

KeptLayout kept_layout(const Matrix& matrix, std::int64_t rows, std::span<const std::int64_t> batch, const KeptLayout& before) { return Layout(matrix, rows, batch, before).take(); }

void copy_on_host(const StridedCopy& copy, int threads) {
    copy.dtype == DType::f32 ? copy_elements<float>(copy, threads) : copy_elements<double>(copy, threads);
}

}  // namespace trifold::tridiagonal
