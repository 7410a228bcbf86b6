# Draws the pictures of results.md from what pictures.awk has written.
# Usage: gnuplot -e 'data="DIRECTORY"; out="DIRECTORY"' pictures.gp

set terminal svg size 860,460 font "Helvetica,Arial,sans-serif,14" background "white" linewidth 1.4 dashlength 0.6
set encoding utf8
set border 3 lc rgb "#666666"
set tics nomirror textcolor rgb "#333333"
set grid lc rgb "#e4e4e4" lw 0.6 lt 1
set key outside right top Left reverse noautotitle samplen 1.6

ADD = "#1f6fb4"
ASK = "#e08a1e"
array hue[7] = ["#888888", "#1f6fb4", "#0f3c66", "#6cb0e0", "#2a8a57", "#e08a1e", "#b5482f"]

# 1 k, 1 M: what an axis of items a second says.
set format y "%.0s%c"

# ---- Items a second by method: bars that lie, so that their names can be read ----

set output out."/throughput.svg"
stats data."/throughput.dat" using 2 nooutput
last = STATS_records - 1
set logscale x
set format x "%.0s%c"
set xrange [1000:200e6]
set yrange [last + 0.6:-0.6]
unset ytics
set ytics scale 0
set xlabel "items/s (logarithmic), batches of 1,000 where there are batches"
set grid noytics
plot data."/throughput.dat" using (1000):0:(1000):2:($0 - 0.36):($0 - 0.02):ytic(1) with boxxy fs solid noborder lc rgb ADD title "add", \
     "" using (1000):0:(1000):5:($0 + 0.02):($0 + 0.36) with boxxy fs solid noborder lc rgb ASK title "look up", \
     "" using 2:($0 - 0.19):3:4 with xerrorbars pt 0 lw 0.8 lc rgb "#333333", \
     "" using 5:($0 + 0.19):6:7 with xerrorbars pt 0 lw 0.8 lc rgb "#333333"
set yrange [*:*]
set ytics scale 1 nomirror
set grid ytics

# ---- Over the batch size -----------------------------------------------------------

set output out."/batches.svg"
set terminal svg size 980,460
set xrange [1:10000]
set yrange [10000:5e6]
set logscale y
set xlabel "items a batch"
set format x "%.0s%c"
stats data."/batches.dat" using 2 nooutput
methods = STATS_blocks
set multiplot
set origin 0, 0
set size 0.4, 1
set title "add"
set ylabel "items/s"
unset key
plot for [i = 0:methods - 1] data."/batches.dat" index i using (column(1)):2 every ::1 with linespoints pt 7 ps 0.5 lc rgb hue[i + 1]
set origin 0.4, 0
set size 0.6, 1
set title "look up"
unset ylabel
set key outside right top Left reverse
plot for [i = 0:methods - 1] data."/batches.dat" index i using (column(1)):5 with linespoints pt 7 ps 0.5 lc rgb hue[i + 1] \
     title columnheader(1)
unset multiplot
set origin 0, 0
set size 1, 1
set terminal svg size 860,460
unset title
unset logscale y

# ---- Over the size of the filter -------------------------------------------------------

set output out."/growth.svg"
set xrange [0.01:8192]
set yrange [0:*]
set xlabel "size of the filter, MB (logarithmic)"
set ylabel "items/s, SETBIT and GETBIT, batches of 1,000"
set format x "%g"
plot data."/growth.dat" index 0 using (column(1)):2:3:4 every ::1 with yerrorlines pt 7 ps 0.6 lc rgb ADD title "add, full", \
     "" index 0 using (column(1)):5:6:7 every ::1 with yerrorlines pt 7 ps 0.6 lc rgb ASK title "look up, full", \
     "" index 1 using (column(1)):2:3:4 every ::1 with yerrorlines pt 6 ps 0.6 dt 2 lc rgb ADD title "add, empty", \
     "" index 1 using (column(1)):5:6:7 every ::1 with yerrorlines pt 6 ps 0.6 dt 2 lc rgb ASK title "look up, empty", \
     "" index 2 using (column(1)):2:3:4 every ::1 with yerrorlines pt 4 ps 0.6 dt 3 lc rgb hue[1] title "add, one key", \
     "" index 2 using (column(1)):5:6:7 every ::1 with yerrorlines pt 4 ps 0.6 dt 3 lc rgb hue[7] title "look up, one key"
unset logscale x

# ---- Over the share of repeats ---------------------------------------------------------------

set output out."/near.svg"
set logscale y
set yrange [50e3:100e6]
set xrange [0.8:5.2]
set xlabel "repeats among the items"
set ylabel "adds with is_new a second (logarithmic)" noenhanced
plot data."/near.dat" index 0 using 1:3:4:5:xtic(2) every ::1 with yerrorlines pt 7 ps 0.6 lc rgb hue[1] title "without a near cache", \
     "" index 1 using 1:3:4:5 every ::1 with yerrorlines pt 7 ps 0.6 lc rgb ADD title "near cache", \
     "" index 2 using 1:3:4:5 every ::1 with yerrorlines pt 6 ps 0.9 lc rgb hue[3] title "near cache, a guard a second", \
     "" index 3 using 1:3:4:5 every ::1 with yerrorbars pt 4 ps 0.9 lc rgb ASK title "a filter in memory"
set xtics autofreq

# ---- Over the size of one call ---------------------------------------------------------------

set output out."/calls.svg"
set terminal svg size 980,460
set key noenhanced
set logscale x
set xrange [80:1.25e6]
set yrange [50e3:100e6]
set xlabel "items in one call (logarithmic)"
set format x "%.0s%c"
set ylabel "items/s (logarithmic)"
array order[4] = [6, 2, 7, 5]
plot for [i = 0:3] data."/calls.dat" index i using (column(1)):2:3:4 with yerrorlines pt 7 ps 0.6 lc rgb hue[order[i + 1]] \
         title columnheader(1), \
     for [i = 0:3] "" index i using (column(1)):5 every ::1 with lines dt 2 lc rgb hue[order[i + 1]], \
     NaN with lines dt 2 lc rgb hue[1] title "the same by commands"
set terminal svg size 860,460
unset logscale
set format x "%g"
