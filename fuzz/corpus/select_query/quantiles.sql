SELECT quantile(0.9)(properties.ms), median(properties.ms), quantileIf(0.99)(properties.ms, event = 'a'), argMax(event, timestamp), groupUniqArray(event) FROM events
