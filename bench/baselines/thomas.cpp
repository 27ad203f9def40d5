// SPDX-License-Identifier: BSD-3-Clause
// The textbook's two sweeps, as people write them: no pivoting, no vectors but those the compiler finds across systems that
// lie side by side, the upper diagonal of U kept in an array of its own.
#include "bench/baselines/baseline.hpp"
#include "bench/baselines/thomas_rows.hpp"

namespace trifold::bench {
namespace {

class Thomas : public Baseline {
public:
    std::string name() const override { return "Thomas loop"; }
    std::string load(const io::TridiagonalData& data) override {
        data_ = &data;
        layout_ = layout_of(data);
        x_ = io::Array(data.rhs.shape(), name());
        io::Shape scratch = data.rhs.shape();
        scratch.extents = {layout_.rows, layout_.inner};
        scratch_ = io::Array(scratch, name());
        return {};
    }
    void restore() override {}
    bool solve() override { return data_->rhs.dtype() == DType::f32 ? run<float>() : run<double>(); }
    const io::Array& x() const override { return x_; }

private:
    template <class T>
    bool run() {
        const std::int64_t plane = layout_.rows * layout_.inner;
        for (std::int64_t s = 0; s < layout_.outer; ++s) {
            const std::int64_t at = s * plane;
            const T *lower = data_->lower.as<T>() + at, *diag = data_->diag.as<T>() + at, *upper = data_->upper.as<T>() + at;
            if (layout_.inner == 1) thomas_rows(layout_.rows, lower, diag, upper, data_->rhs.as<T>() + at, x_.as<T>() + at, scratch_.as<T>());
            else many(layout_.rows, layout_.inner, lower, diag, upper, data_->rhs.as<T>() + at, x_.as<T>() + at, scratch_.as<T>());
        }
        return true;
    }

    template <class T>
    static void many(std::int64_t n, std::int64_t m, const T* __restrict lower, const T* __restrict diag, const T* __restrict upper,
                     const T* __restrict rhs, T* __restrict x, T* __restrict c) {
        for (std::int64_t j = 0; j < m; ++j) {
            const T pivot = 1 / diag[j];
            c[j] = upper[j] * pivot;
            x[j] = rhs[j] * pivot;
        }
        for (std::int64_t i = 1; i < n; ++i)
            for (std::int64_t j = 0, k = i * m; j < m; ++j, ++k) {
                const T pivot = 1 / (diag[k] - lower[k] * c[k - m]);
                c[k] = upper[k] * pivot;
                x[k] = (rhs[k] - lower[k] * x[k - m]) * pivot;
            }
        for (std::int64_t i = n - 2; i >= 0; --i)
            for (std::int64_t j = 0, k = i * m; j < m; ++j, ++k) x[k] -= c[k] * x[k + m];
    }

    const io::TridiagonalData* data_ = nullptr;
    Layout layout_;
    io::Array x_, scratch_;
};

}  // namespace

std::unique_ptr<Baseline> thomas_loop() { return std::make_unique<Thomas>(); }

}  // namespace trifold::bench
